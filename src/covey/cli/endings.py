"""What is said of a run that did not end well: what happened, in the words of the command line, and what to do now."""

from __future__ import annotations

from msgspec import structs

from covey.client.denials import Denied
from covey.client.view.view import View
from covey.lines.plain_text import visible
from covey.protocol.runs import RunComplete, RunOptions

KEY_REFUSED = (
    "Set a valid key (`covey login`, the configuration or the environment) and ask again. A new value in the "
    "environment counts once no other client has this directory open."
)


def in_flags(error: str, options: RunOptions) -> str:
    """A bound that came with the run is named as it was given. Older servers name the setting in its place."""
    if options.max_steps:
        error = error.replace("max_steps of this run", "--max-steps").replace("limits.steps_per_run", "--max-steps")
    if options.max_cost:
        error = error.replace("max_cost of this run", "--max-cost").replace("limits.cost_per_run", "--max-cost")
    return error


def denied_in_short(denied: Denied) -> str:
    """A call that was refused, on one line."""
    about = denied.input if isinstance(denied.input, dict) else {}
    subject = next((str(about[name]) for name in ("command", "file_path", "url", "path") if about.get(name)), "")
    return visible(f"{denied.tool}: {subject}" if subject else denied.tool)


class Ending:
    """What the terminal event of a run does not say is known from the view of its session."""

    def __init__(self, view: View, run_id: str, options: RunOptions) -> None:
        self._view = view
        self._run_id = run_id
        self._options = options

    def worded(self, terminal: RunComplete) -> RunComplete:
        """The same, with an error that fits the command line."""
        if not terminal.error:
            return terminal
        return structs.replace(terminal, error=in_flags(terminal.error, self._options))

    def explanation(self, terminal: RunComplete, *, by: str = "") -> str:
        """What cannot be seen from the answer itself; '' if nothing has to be said. `by`: whom a cancel is from."""
        record = self._view.find_run(self._run_id)
        if terminal.cancelled and record and record.run.cancelled_by == "shutdown":
            return "the server was stopped, and the run was cancelled with it."
        if terminal.cancelled:
            return f"the run was cancelled{by}."
        if terminal.interrupted:
            session = terminal.session_id
            return (
                f"{terminal.error or 'the server was killed while the run was active'}\n"
                f"What it had done by then stays done, and is not repeated: `covey sessions show {session}` shows it, "
                f'`covey run -s {session} "go on"` goes on from there.'
            )
        if terminal.error and record and record.key_refused:
            return f"{terminal.error}\n{KEY_REFUSED}"
        return terminal.error or ""

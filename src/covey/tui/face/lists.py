"""What the lists to choose from hold. Pure: made from the view when a list opens, and again when it has changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from covey.client.view.view import View
from covey.lines.plain_text import one_line
from covey.lines.words import counted, dollars
from covey.protocol.jobs import JobView
from covey.protocol.requests import ProviderInfo
from covey.protocol.search import SearchHit
from covey.tui.face import looks
from covey.tui.face.commands import palette_items
from covey.tui.face.fuzzy import best
from covey.tui.face.state import FaceState, Item, Picker

MINUTE, HOUR, DAY = 60, 3600, 86400


def ago(seconds: float) -> str:
    if seconds < MINUTE:
        return "now"
    if seconds < HOUR:
        return f"{seconds // MINUTE:.0f} min ago"
    return f"{seconds // HOUR:.0f} h ago" if seconds < DAY else f"{seconds // DAY:.0f} d ago"


def fitting(picker: Picker) -> list[Item]:
    """The items that fit what was typed, the best first."""
    return best(picker.query.text, picker.items, lambda item: f"{item.text} {item.found_by}".strip())


def chosen(picker: Picker) -> Item | None:
    found = fitting(picker)
    return found[min(picker.selected, len(found) - 1)] if found else None


def palette(state: FaceState) -> Picker:
    return Picker("palette", "commands", items=palette_items(state))


def session_items(view: View, now: float) -> tuple[Item, ...]:
    items = []
    for known, found in looks.listed(view):
        state = {"?": "asks", "●": "works", "✗": "failed", "•": "new"}.get(mark := looks.mark(view, known, found), "")
        about = " · ".join(piece for piece in (state, ago(now - known.updated_at)) if piece)
        items.append(
            Item(known.id, one_line(known.title) or "untitled", about, mark, known.id, known.id == view.current)
        )
    return tuple(items)


def sessions(view: View, now: float) -> Picker:
    hint = "⏎ open   ctrl+r rename   ctrl+x ctrl+x delete"
    return Picker("sessions", "sessions", items=session_items(view, now), hint=hint)


def models(view: View, providers: Sequence[ProviderInfo]) -> Picker:
    current = looks.model(view)
    items = [
        Item(
            f"{provider.id}/{model.id}",
            model.name or model.id,
            _model_about(provider, model.context_window, model.cost_per_1m_in, model.cost_per_1m_out),
            found_by=f"{provider.id}/{model.id}",
            is_current=f"{provider.id}/{model.id}" == current,
        )
        for provider in providers
        for model in provider.models
    ]
    return Picker("models", "models, for this session", items=tuple(items))


def _model_about(provider: ProviderInfo, window: int, price_in: float, price_out: float) -> str:
    pieces = [provider.name or provider.id]
    if window:
        pieces.append(f"{window // 1000}k")
    if price_in or price_out:
        pieces.append(f"${price_in:g} / ${price_out:g}")
    if provider.key_problem:
        pieces.append("no key")
    return " · ".join(pieces)


def timeline(view: View) -> Picker:
    """The prompts of the session, the newest first: each a point to go back to."""
    found = looks.prompts(view)[::-1]
    items = [
        Item(m.run_id or "", one_line(m.text) or "(no text)", f"{n} back", found_by=m.id)
        for n, m in enumerate(found, 1)
    ]
    hint = "⏎ what an undo would do   ⇥ fork before it"
    return Picker("timeline", "go back to before …", items=tuple(items), hint=hint)


def jobs(found: Sequence[JobView], now: float) -> Picker:
    items = [
        Item(
            job.id,
            one_line(job.command),
            _job_state(job, now),
            "●" if job.is_running else "",
            job.id,
        )
        for job in found
    ]
    return Picker("jobs", "jobs", items=tuple(items), hint="⏎ its output   ctrl+x ctrl+x end it")


def _job_state(job: JobView, now: float) -> str:
    if job.is_running:
        return f"since {ago(now - job.started_at)}".replace("since now", "just begun").replace(" ago", "")
    if job.exit_code is not None:
        return f"exit {job.exit_code}"
    return "ended with the server" if job.state == "closed" else "ended by somebody" if job.was_killed else "ended"


def history(state: FaceState, query: str) -> Picker:
    seen: dict[str, None] = {}
    for text in reversed(state.history):
        seen.setdefault(text)
    items = [Item(text, one_line(text.strip().replace("\n", " ⏎ "))) for text in seen]
    picker = Picker("history", "earlier prompts", items=tuple(items))
    return replace(picker, query=picker.query.insert(query)) if query else picker


def hits(words: str, found: Sequence[SearchHit], now: float) -> Picker:
    """Each place where words were said: choosing it opens its session, and looks for them there."""
    items = [
        Item(
            f"{number} {hit.session_id}",
            one_line(hit.snippet),
            f"{one_line(hit.title)[:30]} · {ago(now - hit.at)}",
            found_by=words,
        )
        for number, hit in enumerate(found)
    ]
    return Picker("hits", f"“{words}” in all sessions", items=tuple(items))


def modes(view: View) -> Picker:
    about = {
        "ask": "changes and commands are asked about, as the rules say",
        "plan": "it looks, and changes nothing",
        "accept_edits": "edits in this directory are not asked about",
        "sandboxed": "nor are commands, which run in the sandbox without the network",
    }
    current = looks.mode(view)
    items = [Item(m, looks.MODE_WORDS[m], about[m], found_by=m, is_current=m == current) for m in looks.MODES]
    return Picker("modes", "what is asked about", items=tuple(items))


def themes() -> Picker:
    items = (
        Item("dark", "dark", "for a dark background"),
        Item("light", "light", "for a light one"),
        Item("16", "the terminal's colours", "its own sixteen"),
        Item("none", "none", "no colours at all"),
    )
    return Picker("themes", "theme", items=items)


PROVIDERS = (
    ("anthropic", "Anthropic"),
    ("openai", "OpenAI"),
    ("google", "Google"),
    ("openrouter", "OpenRouter"),
    ("groq", "Groq"),
    ("deepseek", "DeepSeek"),
)


def providers() -> Picker:
    items = tuple(Item(id, name, id) for id, name in PROVIDERS)
    return Picker("providers", "whose key do you have?", items=items, hint="⏎ give the key; it is not shown")


def start() -> Picker:
    """A first run without a model: what to do about it."""
    items = (
        Item("login", "I have a key of a provider", "Anthropic, OpenAI, Google, …"),
        Item("embedded", "Use a very small model on this machine", "you are asked before 130 MB are downloaded"),
        Item("local", "I run a model server (Ollama, llama.cpp, LM Studio)", "start it, then choose this"),
        Item("later", "Look around first", "a prompt is refused until there is a model"),
    )
    hint = "↑ ↓ and ⏎ choose. What you type is kept below, as your first prompt."
    return Picker("start", "Covey needs a model", items=items, hint=hint, filters=False)


def refreshed(picker: Picker, view: View, now: float) -> Picker:
    """The list of sessions follows what happens; the one that was chosen stays chosen."""
    if picker.kind != "sessions" or picker.renaming is not None:
        return picker
    items = session_items(view, now)
    known = {item.id for item in items}
    items = (*items, *(item for item in picker.items if item.id not in known and item.mark == "older"))
    if items == picker.items:
        return picker
    before = chosen(picker)
    changed = replace(picker, items=items)
    ids = [item.id for item in fitting(changed)]
    return replace(changed, selected=ids.index(before.id) if before and before.id in ids else picker.selected)


def preview(view: View, session_id: str) -> list[str]:
    """A few words on a session, for whoever chooses one."""
    found = view.sessions.get(session_id)
    if found is None or found.session is None:
        return []
    known = found.session
    lines = [one_line(known.title) or "untitled", counted(known.message_count, "message")]
    if known.cost:
        lines[-1] += f" · {dollars(known.cost)}"
    lines += [f"{run.state}: {one_line(run.prompt)}" for run in found.open_runs[:3]]
    here = [client.name or "somebody" for client in view.clients.values() if client.session_id == session_id]
    return [*lines, f"here: {', '.join(here)}"] if here else lines

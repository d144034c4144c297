"""What `--help` teaches. Only texts: which options there are stands in `main`."""

from __future__ import annotations

DESCRIPTION = """\
Covey is a coding agent that runs as a server: any number of clients share one session,
and every prompt that was accepted ends with exactly one answer.
"""

EXAMPLES = """\
examples:
  covey run "What does this project do?"        ask about the directory you are in
  git diff | covey run "Review this change"     what comes in on stdin is put before the prompt
  covey run -C "And now add a test for it"      go on where you left off
  covey run --json "..." | jq -r .text          for scripts
  covey sessions                                what was talked about in this directory
  covey sessions --grep "flaky test"            where it was said
  covey status                                  which server runs, and what it is doing
  covey stats                                   what it has cost

Providers, models and permissions belong in ~/.config/covey/config.toml. A covey.toml in a project counts in full
only once you have trusted its directory.

A server is started when it is needed and leaves when nobody needs it any more.
`covey COMMAND --help` says more about each command.
"""

FILES_AND_VARIABLES = """\
~/.config/covey/config.toml        your configuration; also $XDG_CONFIG_HOME/covey/config.toml
covey.toml                         a project's own; counts in full once you trust its directory
~/.local/share/covey               sessions, server.log and the token; also $XDG_DATA_HOME/covey
COVEY_HOST                         the server, as for --host
COVEY_DATA_DIR                     the data directory, as for --data-dir
COVEY_CONFIG                       a further configuration file, as for `covey serve --config`
COVEY_MODEL                        the model of `covey run`, as for --model
COVEY_TOKEN                        the token for a server on tcp://
"""

RUN_EXAMPLES = """\
examples:
  covey run "What does this project do?"
  git diff | covey run "Review this change"
  covey run -a screenshot.png "Why does this look wrong?"
  covey run -s 1x2y3z "Go on, but without the cache"
  covey run --accept-edits --allow 'bash:make test' "Fix the failing test"
  covey run --steer "Use the other parser"                # to the active run
  covey run --schema '{"required": ["files"]}' "What has no tests?" | jq .
  id=$(covey run --detach "Run the tests and fix them")   # goes on by itself
  covey runs wait $id                                     # up to its end

At most 256 KiB are taken from stdin: put more into a file, and name that in the prompt.

The answer goes to stdout while it is written, everything else to stderr. On a terminal it is rendered from Markdown; in
a pipe, and with --raw, it is as the model wrote it. Of results the most telling lines are shown: -v shows all, -q none.
--plain, and TERM=dumb, move no cursor and write one line for each thing that happens. COVEY_THEME is dark, light, 16 or
none; NO_COLOR and FORCE_COLOR count.

What was written cannot be taken back: if an answer breaks off and is asked for again, stderr says so, also with -q, and
the new one begins on a line of its own. A script that needs the final words alone takes `text` of --json, or --schema.

With --json exactly one object is written at the end, also if the prompt is refused or no server is reached: `error`
says why, `exit_code` is that of the command. Only a command line that cannot be understood has none. With --stream-json
the last line is the run's `run_complete`; where there is none, it is an object with `error` and `exit_code`.
The ID of a session may be cut short, to its beginning or its end, as long as no other has the same.

--allow and --accept-edits are for this run only, and `deny` and `ask` rules win over them. `covey sessions mode`
is for a whole session, rules in your config.toml for all of them. What was denied is in `denied` of --json.

Ctrl-C and SIGTERM cancel this run, not its neighbours, and wait for its end; a second one leaves at once.
If the server goes away in the middle, covey reconnects and goes on. If nobody reads stdout any more,
covey leaves quietly and the run goes on.

Where a tool needs a permission you are asked on the terminal. Without one it is denied, unless somebody else looks at
the session and could answer: then it waits for them, for as long as they do. Questions of the agent are the same.

exit codes:
  0 completed              2 wrong usage
  1 the run failed, or was denied something and there is --fail-on-denied
  3 no server              4 cancelled by others     5 interrupted: the server was killed
  6 stopped at a bound: its steps or costs, or it went round in circles; the model has had a last word
  124 timeout              130 Ctrl-C or SIGTERM     141 nobody reads stdout
"""

RUNS_EXAMPLES = """\
examples:
  covey runs                       the open runs, the newest first, and what each of them waits on
  covey runs --all                 also those that have ended
  covey runs --everywhere          those of all directories of the server
  covey runs wait ID               follow one to its end, and answer what it asks for
  covey runs wait --deny ID        for scripts: deny what it asks for if nobody can be asked here
  covey runs wait                  the same, if only one is open
  covey runs allow ID              allow what is asked, by the id that is shown with it; also --session, --always
  covey runs deny ID use pytest    deny it, and say why
  covey runs answer ID yes         answer a question
  covey runs say ID mind the API   the run reads it before its next step
  covey runs interrupt ID stop, look at the log first
  covey runs cancel ID             cancel one, and not its neighbours

`covey run --detach` prints the ID of a run. Such a run waits where it needs a permission, until somebody answers.
`wait` asks you on the terminal. Without one it only watches: it answers nothing, says that an answer is needed, and
waits until somebody gives it elsewhere. With --deny it denies then. What the run had finished saying before is not
repeated: `covey sessions show` has it. Ctrl-C leaves, and the run goes on. An ID may be cut short, to its
beginning or its end, as long as no other has the same; not that of what is asked.

exit codes:
  those of `covey run`; also 2 if there is no such run
"""

SERVE_EXAMPLES = """\
examples:
  covey serve                                       on your own socket, which `covey run` finds by itself
  covey serve --host tcp://127.0.0.1:8790           on a port; clients need the token in DATA-DIR/token
  covey serve --host tcp://127.0.0.1:0              on any free port; it is printed

Once it listens, one line on stdout says where. Logs go to stderr. Ctrl-C ends it in order. The data directory must be
yours, and nobody else may write into it. A token of your own needs 16 characters.
"""

SESSIONS_EXAMPLES = """\
examples:
  covey sessions                         list them, the last changed first
  covey sessions --limit 10              only the latest ten, and whether there are more
  covey sessions --grep "flaky test"     where these words were said; also `covey sessions search flaky test`
  covey sessions --everywhere            those of all directories of the server, by directory
  covey sessions --grep puffin --everywhere    in all directories of the server
  covey sessions show ID                 read one
  covey sessions rename ID New title
  covey sessions summarize ID the API    have the model summarise it, and keep what is about the API
  covey sessions archive ID              put it aside: not listed without --archived, and never pruned
  covey sessions model ID anthropic/claude-opus-5-5
  covey sessions mode ID sandboxed       commands run in the sandbox without asking; back with `ask`
  covey sessions export > talk.md        that of the latest prompt, as Markdown; with --json all that there is

A session that was forked, renamed or archived has changed, too; `show` and `export` without an ID take that of the
latest prompt. An ID may be cut short, to its beginning or its end, as long as no other has the same.

A search finds messages and titles with all the words, the newest first, also in archived sessions; the last word may be
the beginning of one.
Nothing found is exit code 1. [retention] in config.toml says what is deleted by itself: by default nothing.
"""

STATS_EXAMPLES = """\
examples:
  covey stats                       the last 30 days, day by day
  covey stats --days 7 --by model   which model was used how much this week
  covey stats --by directory        where
  covey stats --json | jq ...       each line: a day, a directory and a model

Days are those of UTC. What a session cost altogether is shown by `covey sessions`. Costs are by the prices that were
known when a run ended; what costs nothing, or has no known price, is shown as -.
"""

STATUS_EXAMPLES = """\
examples:
  covey status                           your server, and the directories that it has open
  covey status --json | jq .pid
  covey status --host tcp://127.0.0.1:8790

None is started. Its data directory, its log and its token: `man covey`, or `covey config` and `covey logs`.
"""

STOP_EXAMPLES = """\
examples:
  covey stop                             cancels open runs, writes their last words, and waits for the end
  covey stop --if-idle                   only if nobody needs it
"""

DOCTOR_EXAMPLES = """\
examples:
  covey doctor                           look at everything, also while a server runs; changes nothing
  covey stop && covey doctor --repair    repair it; the backup stays beside the store
  covey doctor --restore                 put the newest of the daily backups in the place of a damaged store
  covey doctor --set-aside               where nothing can be saved: rename it, and begin anew
  covey doctor --store postgres://…      look at what the nodes of a cluster share

It says where the key of each provider comes from as well, and shows none of them; with --json this is in `keys`.
Once, it also shows rules of your config.toml that hold in every directory and look as if they were meant for one:
earlier versions wrote such rules when you answered "always". With --json they are in `global_rules` each time.

A configuration with which no prompt can be taken, such as one with a model that no provider has, is something wrong,
too: it has a line of its own; with --json it is in `config`. `healthy` is about the store alone.

exit codes:
  0 all is well    1 something is wrong    2 wrong usage, or a server runs    3 no store, or it cannot be opened
"""

INIT_EXAMPLES = """\
examples:
  covey init                       the agent looks around, then asks before it writes AGENTS.md
  covey init --yolo                let it look and write without asking
  covey init --force               bring an AGENTS.md that is there up to date
  echo "The tests need a database" | covey init     tell it something beforehand

AGENTS.md holds what an agent should know about a project: commands, layout, conventions. Covey and other
agents read it before every prompt. Read it yourself when it is written; it is yours to change.

Exit codes and Ctrl-C are those of `covey run`; also 2 if AGENTS.md is there, 1 if it was not written.
"""

TRUST_EXAMPLES = """\
examples:
  covey trust                            this directory
  covey trust ~/code/birdhouse
  covey trust --yes                      approve all that its files would start, without being asked
  covey trust --list                     which directories are trusted
  covey trust --remove ~/code/birdhouse

A project's covey.toml comes with the project, and you may not know who wrote it. Until you trust the directory, it
may only choose among your models and forbid things; providers, permissions and limits in it are ignored. So look
into the file first. Trust is for this very directory, not for those inside it, and is kept in trusted.toml beside
your config.toml.

What its files would start (MCP servers and the like) is shown to you one by one, and only what you approve is used. If
it changes, also by one byte of a script of the project, you are asked again.
"""

MODELS_EXAMPLES = """\
examples:
  covey models           all that can be asked now; * marks the one that a prompt goes to
  covey models get       the embedded model: says its size, source and licence, and asks before it downloads

Where the key of each provider comes from is said as well; keys are not shown.
"""

SESSION_MODES = ("ask", "plan", "accept_edits", "sandboxed")
"""As `protocol.messages.SessionMode` has them, which would be a heavy import."""
SESSIONS_ACTIONS = {
    "list": "all sessions of this directory, the last changed first (this is the default)",
    "search": "where all these words were said, the newest first",
    "show": "one session, with long outputs cut short",
    "rename": "give a session another title",
    "model": "use another model in a session from its next step on; without a name, the configured one again",
    "mode": "what is asked about in a session: as rules say, nothing is changed, not edits, not what the sandbox holds",
    "summarize": "replace a conversation by a summary of it, for the model; what was said can still be read",
    "archive": "put a session aside: it is kept, and listed only with --archived",
    "unarchive": "take an archived session back",
    "delete": "delete a session; its open runs are cancelled",
    "export": "all of a session, as Markdown or JSON",
}

"""The mutants that get through all nets, by file, with the reason: nobody can see a difference, or a constant moved."""

from __future__ import annotations

KNOWN: dict[str, dict[str, str]] = {
    "lifecycle/history.py": {
        "CHARACTERS_PER_TOKEN = 4  →  5": "a constant, by one",
        "MESSAGE_TOKENS = 8  →  9": "a constant, by one",
        "IMAGE_CHARACTERS = 6_000  →  6001": "a constant, by one",
    },
    "lifecycle/reply.py": {
        "PART_CHARACTERS = 64  →  65": "a constant, by one",
        "if index is None:  →  never": "then the answer is cut off, and nothing is kept behind that",
    },
    "protocol/growth.py": {
        "JOIN_AT = 1024  →  1025": "a constant, by one",
        "if self._recent or len(self._chunks) > 1:  →  GtE": "joining one chunk gives that chunk",
    },
    "engine/turns/answer_writer.py": {
        "WHOLE_FREE = 64 * 1024  →  1025": "a constant, by a little",
        "WHOLE_SHARE = 3  →  4": "a constant, by one",
        "WHOLE_PER_S = 1024 * 1024  →  1025": "a constant, by a little",
        "WHOLE_PER_S = 1024 * 1024  →  1025 #2": "a constant, by a little",
        "self._spent = 0  →  1": "one character",
        "elif self._spent > WHOLE_FREE + WHOLE_SHARE * self._reply.size:  →  GtE": "one character",
        "if self._checkpoint is None:  →  always": "the second timer finds nothing to save",
    },
    "lifecycle/budget.py": {"LOOP_REPEATS = 5  →  6": "a constant, by one"},
    "permissions/judge.py": {
        "inside = rules.root and intent.subject.startswith(prefix)  →  without intent.subject.startswith(prefix)": (
            "what does not begin with the prefix is not shortened anyway"
        ),
    },
    "permissions/lines.py": {
        "if wanted:  →  always": "without patterns nothing is looked at",
        "for spelled in (plain, spell(command.words), plain[plain.find(command.name) :] if command.name else plain):"
        "  →  always the first": "an empty name is found at the beginning",
        "if not _HARMLESS_NAMES.fullmatch(name) or not value.known or not _HARMLESS_VALUE.fullmatch(value.text):"
        "  →  without not value.known": "what is not known has a character that no harmless value has",
        'if redirect.op.startswith("<<") and redirect.target.kind is WordKind.UNKNOWN:'
        "  →  without redirect.op.startswith('<<')": "every other redirection to the unknown is found before",
    },
    "permissions/safe_commands.py": {
        r'short = len(words) == 1 and words[0].known and re.fullmatch(r"\d{1,2}(?:\.\d+)?s?", words[0].text)'
        "  →  without words[0].known": "what is not known is not all digits",
        r'return "" if words and re.fullmatch(r"-[eux]*(?:[eux]|o pipefail)(?: -o pipefail)?", text) else ARGUMENT'
        "  →  without words": "no words are no text that fits",
        r'plain = all(word.known and re.fullmatch(r"[\w./!=&|()-]+|\]\]", word.text) for word in words)'
        "  →  without word.known": "what is not known has another character",
        'while rest and rest[0].known and re.fullmatch(r"-[nEru]+|--quiet|--silent|--regexp-extended", rest[0].text):'
        "  →  without rest[0].known": "what is not known has another character",
        'if rest[0].text == "-F" and (not rest[1:] or not rest.pop(1).known):  →  2': (
            "with nothing behind the separator there is no program, which is found next"
        ),
        "at = _end_of_exec(words, at + 1)  →  without the right": "the option itself is not the end",
    },
    "permissions/safe_git.py": {
        '_LOG = Spec(short="pursziRwbaEFPicqmtMCDgW", valued="nSGULl", long=_SHOW, paths=True)  →  without paths': (
            "it is the default"
        ),
    },
    "permissions/safe_options.py": {
        'if word.known and word.text == "--":  →  without word.known': "what is not known has another character",
        "return 0 if name in spec.long.split() else -1  →  2": "below zero is below zero",
        "return -1  →  2": "below zero is below zero",
        "if letter not in (spec.short or \"\") and not letter.isdigit():  →  without ''": "for the sake of types only",
        "if value and (found := place.problem(Word(value, word.kind))):  →  without value": "nothing speaks against ''",
    },
    "permissions/safe_paths.py": {
        'return SECRET if any(is_secret(part, globs=globs) for parts in found for part in parts or ()) else ""'
        "  →  without ()": "for the sake of types only",
        'if part == ".." or (part[:1] == "." and _GLOB.search(part) and fnmatchcase("..", part)):'
        "  →  without _GLOB.search(part)": "of names that are no patterns only `..` fits it",
        "if not globs or not _GLOB.search(part):  →  without not _GLOB.search(part)": (
            "each example is among the names that were looked for before"
        ),
        "if not cwd:  →  never": "an empty path is the root",
    },
    "permissions/shell.py": {
        "MAX_LENGTH = 32_768  →  32769": "a constant, by one",
        "MAX_COMMANDS = 300  →  301": "a constant, by one",
        "_LEVELS_PER_TEXT = 5  →  6": "a constant, by one",
        "_LONG_TEXT = 2_000  →  2001": "a constant, by one",
        "def __init__(self, text: str, depth: int = 0) -> None:  →  1": "a bound, by one",
        "self._adopt(self._inside(text), -1)  →  2": "below zero is below zero",
        "self._adopt(inner, -1)  →  2": "below zero is below zero",
        "inner = _Parser(body, self.depth + 1)  →  without the right": "a bound, by one",
        "inner = _Parser(body, self.depth + 1)  →  2": "a bound, by one",
    },
    "permissions/shell_commands.py": {
        r'return not (self.target.known and re.fullmatch(r"\d+-?|-", self.target.text))'
        "  →  without self.target.known": "what is not known has another character",
        'return ">" in self.op and not (self.target.known and self.target.text == "/dev/null")'
        "  →  without self.target.known": "what is not known has another character",
        'return self.op == "<" and self.feeds  →  without self.feeds': "nothing speaks against reading /dev/null",
        'return self.op[0] == "<" and not (self.target.known and self.target.text == "/dev/null")'
        "  →  without self.target.known": "what is not known has another character",
    },
    "permissions/shell_grammar.py": {
        "self.skip_blanks()  →  left out": "the pipeline before has passed them",
        "self.skip_blanks()  →  left out #3": "every command has passed them",
        "self.skip_blanks()  →  left out #4": "every command has passed them",
        "self._separated += 1  →  2": "it counts only whether it has grown",
        "self._separated += 1  →  2 #2": "it counts only whether it has grown",
        'elif opener == "{":  →  always': "there are only two",
        "words.append(Word(operator, bare=False, head=operator))  →  without bare": "no operator is a keyword",
        "words.append(Word(operator, bare=False, head=operator))  →  True": "no operator is a keyword",
        "words.append(Word(operator, bare=False, head=operator))  →  without head": "only a pattern's is looked at",
    },
    "permissions/shell_redirects.py": {
        "def __init__(self, text: str, depth: int = 0) -> None:  →  1": "a bound, by one",
        "self._announced = self._separated = 0  →  1": "it counts only whether it has grown",
        "self._announced += 1  →  2": "it counts only whether it has grown",
        "if self._bodies:  →  always": "where none is announced, none is read",
        "end = len(self.text) if end < 0 else end  →  LtE": "no here-document is at the beginning of the text",
        "end = len(self.text) if end < 0 else end  →  1": "no here-document is at the beginning of the text",
        "self.at = len(self.text) if end < 0 else end  →  LtE": "before the line end there is the comment",
        "self.at = len(self.text) if end < 0 else end  →  1": "before the line end there is the comment",
    },
    "permissions/shell_words.py": {
        "MAX_DEPTH = 30  →  31": "a constant, by one",
        "UNKNOWN = 4  →  5": "only the order of kinds counts",
        "return Word(text, head=text)  →  without head": "only a pattern's is looked at",
        'if self.bare and text == "[":  →  without self.bare': "in quotes it is the command, too",
        'head = text if self.head < 0 else "".join(self.pieces[: self.head])  →  always the second': (
            "only a pattern's is looked at"
        ),
        "def __init__(self, text: str, depth: int = 0) -> None:  →  1": "a bound, by one",
        'before = self.text[self.at - 1] if self.at else ""  →  always the first': (
            "what is before a word does not count at its beginning"
        ),
        'if char == "[" and growing.bare and growing.head < 0 and _MAYBE_SUBSCRIPT.match("".join(growing.pieces)):'
        "  →  without growing.head < 0": "what is not literal is no part of a name",
        'if char == "[" and growing.bare and growing.head < 0 and _MAYBE_SUBSCRIPT.match("".join(growing.pieces)):'
        "  →  LtE": "what is not literal is no part of a name",
        'if char == "[" and growing.bare and growing.head < 0 and _MAYBE_SUBSCRIPT.match("".join(growing.pieces)):'
        "  →  1": "what is not literal is no part of a name",
        'elif char in "{}~]":  →  always': "unusual blanks are refused before; this makes sure once more",
        "self._double(growing)  →  left out #2": "the quote is read next",
        "if end < 0:  →  LtE": "the end of a quote is behind its beginning",
        "if end < 0:  →  1": "the end of a quote is behind its beginning",
        "if self.depth > MAX_DEPTH:  →  GtE": "a bound, by one",
    },
    "permissions/shell_wrappers.py": {
        'if word.text[:1] != "-":  →  never': "what has no dash is among no options; it only takes longer",
        'elif name in _RUNNERS and len(words) > 2 and words[1].text == "run":  →  GtE': "then there is nothing to run",
        'if name in _WRAPPERS and not (name == "command" and words[1:] and words[1].text in ("-v", "-V")):  →  2': (
            "then there is nothing to run"
        ),
        'pieces = [Word(text, head=text) for text in words[0].text[1:-1].split(",")]  →  without head': (
            "only a pattern's is looked at"
        ),
        'if wrapper.assigns and "=" in text and text[0] != "-":  →  without text[0] != \'-\'': (
            "an option with its value is one word as well"
        ),
        "if at < len(words):  →  always": "no words are an empty text, which runs nothing",
        "if at < len(words):  →  LtE": "no words are an empty text, which runs nothing",
        'elif word.text[:2] in options and len(word.text) > 2 and word.text[1] != "-":'
        "  →  without len(word.text) > 2": "an empty text runs nothing",
        'elif word.text[:2] in options and len(word.text) > 2 and word.text[1] != "-":'
        "  →  GtE": "an empty text runs nothing",
        'elif word.text[:2] in options and len(word.text) > 2 and word.text[1] != "-":'
        "  →  without word.text[1] != '-'": "two dashes are not among the options",
        "end = _end_of_exec(words, at + 1)  →  without the right": "the option itself is not the end",
        "if words[at + 1 : end]:  →  always": "no words are an empty text, which runs nothing",
        "if words[at + 1 : end]:  →  without the right": "no words are an empty text, which runs nothing",
        "if words[at + 1 : end]:  →  without the left": "no words are an empty text, which runs nothing",
        'elif value and name in ("core.pager", "core.editor", "core.sshCommand", "core.fsmonitor", "diff.external"):'
        "  →  without value": "an empty text runs nothing",
    },
    "lifecycle/undo.py": {
        'return max((place for place, message in enumerate(messages) if message.role == "assistant"), default=0)'
        "  →  1": "without an answer there is nothing to cut",
    },
    "store/journal.py": {
        "GROUP_LIMIT = 512  →  513": "a constant, by one",
        "TRIM_EVERY = 1000  →  1001": "a constant, by one",
        "READERS = 2  →  3": "a constant, by one",
        "def publish(self, seq: int, event: Event, encoded: bytes) -> None: ...  →  left out": "the body of a protocol",
        "def grow(self, delta: MessageDelta) -> None: ...  →  left out": "the body of a protocol",
        'self._thread = threading.Thread(target=self._write_loop, name="covey-write", daemon=True)  →  without name': (
            "a name for people who debug"
        ),
        "await WorkspaceJournal(self, change.workspace_id, _Silent(), 0).write(change.writes, patient=False)  →  1": (
            "it has no events, so none are counted"
        ),
        "self._readers.shutdown(wait=True)  →  without wait": "it is the default",
        "item = self._inbox.get(timeout=RETRY_S if self._stalled else None)  →  always the first": (
            "the thread wakes up for nothing four times a second"
        ),
        "self._land(list(zip(group, results, strict=True)))  →  without strict": "a guard against a bug in a store",
        "self._land(list(zip(group, results, strict=True)))  →  False": "a guard against a bug in a store",
        "if self._outbox and self._outbox[0] is pending:  →  never": "removing it finds the first one first",
        "if self._outbox and self._outbox[0] is pending:  →  without self._outbox": "what landed is always in there",
        "for seq, (event, encoded) in enumerate(zip(change.events, change.encoded, strict=True), result):"
        "  →  without strict": "both come from one sequence",
        "for seq, (event, encoded) in enumerate(zip(change.events, change.encoded, strict=True), result):"
        "  →  False": "both come from one sequence",
    },
    "engine/lanes/dispatcher.py": {
        "if unrecorded:  # each is recorded or refused by now, and what follows from that is ahead of this:"
        "  →  always": "one more empty change to wait for",
        "if ruling.lane.mark != self.lane.mark:  →  always": "the same mark is written again",
        "entry.row = structs.replace(entry.row, cancelled=True)  →  without cancelled": (
            "in memory the lane knows; the row says it only in the store, where the change below puts it"
        ),
        "entry.row = structs.replace(entry.row, cancelled=True)  →  False": (
            "in memory the lane knows; the row says it only in the store, where the change below puts it"
        ),
        "elif isinstance(decision, StopTurn) and self._turn and self._turn.run_id == decision.run_id:"
        "  →  without isinstance(decision, StopTurn)": (
            "no other decision is about the run that is still active after it"
        ),
        "assert turn is not None and turn.run_id == run_id  →  without turn is not None": "an assertion",
        "assert turn is not None and turn.run_id == run_id  →  without turn.run_id == run_id": "an assertion",
        "assert turn is not None and turn.run_id == run_id  →  and/or": "an assertion",
        'driver = asyncio.create_task(self._run_turn(turn, begun), name=f"run {run_id}")  →  without name': (
            "a name for people who debug"
        ),
        "if turn:  →  always": "without a turn there is nothing to let go of",
        "if turn:  →  never": "an idle dispatcher is dropped whole, and a busy one has the next turn in its place",
        "elif isinstance(decision, StopTurn) and self._turn and self._turn.run_id == decision.run_id:"
        "  →  without self._turn.run_id == decision.run_id": "only the active run is told to stop",
        "host=run.folded_into or \"\",  →  without ''": "no run has the id None, as none has an empty one",
    },
    "engine/lanes/lane_writer.py": {
        "ruling.done.exception()  # whoever awaits it still gets it; nobody has to  →  left out": (
            "asyncio would complain in the log that nobody has asked"
        ),
        "ruling.done.exception()  →  left out": "asyncio would complain in the log that nobody has asked",
        "for wait_s in chain(WAITS_S, repeat(WAITS_S[-1])):  →  2": "half a minute or five seconds between attempts",
    },
    "engine/lanes/lanes.py": {
        "self._newest_seq = 0  →  1": "what the store says replaces it before anybody posts",
    },
}

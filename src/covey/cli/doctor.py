"""`covey doctor`: is the store as it must be, and what to do if it is not. Needs no server, and may run beside one."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw

from covey.cli import common, doctor_aside, doctor_keys, doctor_rules, doctor_sandbox, doctor_store, doctor_texts, exits
from covey.cli.doctor_rules import GlobalRules
from covey.cli.keys_here import with_keys_here
from covey.cli.listing import sentences, tell
from covey.cli.screen import plain
from covey.client.connect import owner_address
from covey.config.defaults import why_no_prompt
from covey.config.load import load
from covey.config.schema import ConfigError
from covey.doctor.oracle import Examination, examine, open_runs
from covey.doctor.oracle_file import NAME, NoStore, check_file, no_room
from covey.doctor.oracle_findings import Finding
from covey.doctor.oracle_record import Record
from covey.doctor.repair import Repaired, repair
from covey.doctor.restoring import newest_backup, restore
from covey.machine.locks import open_lock, try_lock
from covey.machine.names import TAG_VARIABLE, run_tag, server_lock, widest_tag
from covey.protocol.paths import Address, default_data_dir
from covey.store.base import StoreFailed
from covey.tools import process_table

SHOWN = 10
"""Findings of one kind that are written out: one cause mostly has many effects, and --json has them all."""

_COUNTED = ("sessions", "runs", "messages", "events")


def main(args: argparse.Namespace) -> int:
    if args.store:
        return _check_shared(args)
    data_dir = Path(args.data_dir).expanduser().absolute() if args.data_dir else default_data_dir()
    return common.run(_doctor(data_dir, args))


async def _doctor(data_dir: Path, args: argparse.Namespace) -> int:
    try:
        if args.set_aside:
            return _set_aside(data_dir, args)
        if args.restore:
            return _restore(data_dir, args)
        return _repair(data_dir, args.json) if args.repair else _check(data_dir, args.json)
    except NoStore as error:
        advice = _advice(data_dir, error) if error.is_damaged else ()
        raise exits.CommandFailed("\n".join((str(error), *advice)), exits.UNREACHABLE) from None


def _advice(data_dir: Path, error: NoStore) -> Iterator[str]:
    """What can be done about a store that is damaged."""
    if error.may_be_saved:
        how = doctor_aside.command(data_dir, "doctor", "--repair")
        yield f"{how} makes a backup, then saves what can still be read."
    else:
        yield doctor_aside.offer(data_dir)
    if backup := doctor_aside.backup_offer(data_dir):
        yield backup


def _check_shared(args: argparse.Namespace) -> int:
    """The store of a cluster: nodes may be running, and nothing of this machine is looked at."""
    if args.repair or args.set_aside or args.restore:
        raise exits.UsageError("a store that nodes share is only looked at: restore it from a backup")
    where = doctor_store.shown(args.store)
    try:
        found = doctor_store.look(args.store)
    except StoreFailed as error:
        common.complain(error.message)
        return exits.UNREACHABLE
    if args.json:
        print(json.dumps(_json(where, None, found, found.findings)))
    else:
        _print_state(where, None, found)
        _print_findings(found.findings, found.records)
    return exits.FAILED if found.findings else exits.OK


def _set_aside(data_dir: Path, args: argparse.Namespace) -> int:
    with _owned(data_dir):
        if not args.yes and (full := no_room(data_dir)):
            raise NoStore(f"there is no room in {data_dir} ({full}): make some, then look again. Nothing was changed")
        if not args.yes and doctor_aside.is_healthy(data_dir):
            question = f"The store in {data_dir} is healthy. Begin anew, without the sessions in it?"
            meant = doctor_aside.is_meant(question)
            if meant is None:
                raise exits.UsageError(f"the store in {data_dir} is healthy: with --yes it is set aside all the same")
            if not meant:
                common.complain("Nothing was changed.")
                return exits.FAILED
        try:
            target = doctor_aside.set_aside(data_dir)
        except OSError as error:
            common.complain(f"The store could not be set aside: {error}")
            return exits.FAILED
    said = f"The store is now {target}. Renamed to {NAME}, it is the store again."
    print(json.dumps({"set_aside": str(target)}) if args.json else sentences(plain(said)))
    return exits.OK


def _restore(data_dir: Path, args: argparse.Namespace) -> int:
    with _owned(data_dir):
        backup = newest_backup(data_dir)
        if backup is None:
            raise NoStore(f"there is no backup in {data_dir} that could be restored")
        if not args.yes:
            lost = f"What was said since {doctor_aside.made_at(backup)} is lost then."
            meant = doctor_aside.is_meant(f"{lost} Put {backup} in the place of the store in {data_dir}?")
            if meant is None:
                raise exits.UsageError(f"{lost} With --yes {backup} takes the place of the store all the same")
            if not meant:
                common.complain("Nothing was changed.")
                return exits.FAILED
        try:
            aside = restore(data_dir, backup, doctor_aside.set_aside)
        except (OSError, apsw.Error) as error:
            common.complain(f"The store could not be restored: {error}")
            return exits.FAILED
    said = f"The store is that of {doctor_aside.made_at(backup)} again."
    said += f" What was in its place is now {aside}." if aside else ""
    told = {"restored": str(backup), "set_aside": str(aside) if aside else None}
    print(json.dumps(told) if args.json else sentences(plain(said)))
    return exits.OK


def _check(data_dir: Path, as_json: bool) -> int:
    server = owner_address(data_dir)
    found = examine(data_dir)
    findings = found.findings + _left_behind(found.records)
    full = no_room(data_dir)
    wrong, warnings = _config_doubts()
    rules = None if wrong else _global_rules(found.records)
    if as_json:
        more = {
            "no_room": full,
            "config": wrong,
            "config_warnings": warnings,
            "global_rules": rules.as_json() if rules else [],
            "keys": doctor_keys.look(os.environ),
            "sandbox": doctor_sandbox.look(),
            "texts": doctor_texts.look(Path.cwd(), os.environ),
        }
        print(json.dumps(_json(data_dir, server, found, findings) | more))
    else:
        _print_state(data_dir, server, found)
        tell(doctor_sandbox.look())
        _print_findings(findings, found.records)
        if full:
            common.complain(f"There is no room in {data_dir} ({full}): no prompt is accepted until there is some.")
        if wrong:
            common.complain(f"The configuration: no prompt is accepted until this is fixed: {wrong}")
        elif not warnings:
            tell("The configuration has no problems.")
        for warning in warnings:
            common.complain(f"The configuration: {warning}")
        for provider, about in doctor_keys.look(os.environ).items():
            tell(f"The key of {provider}: {about}")
        for line in doctor_texts.lines(doctor_texts.look(Path.cwd(), os.environ)):
            tell(line)
        if rules and rules.is_new(data_dir):
            print()
            for line in rules.text().split("\n"):
                tell(line)
            rules.note_shown(data_dir)
        if any(finding.explanation.repair for finding in findings):
            stop = f"Stop the server with {doctor_aside.command(data_dir, 'stop')}, then run" if server else "Run"
            tell(f"{stop} {doctor_aside.command(data_dir, 'doctor', '--repair')}: it makes a backup first.")
        if found.is_damaged and (backup := doctor_aside.backup_offer(data_dir)):
            tell(backup)
    return exits.FAILED if findings or full or wrong else exits.OK


def _repair(data_dir: Path, as_json: bool) -> int:
    check_file(data_dir / NAME)
    with _owned(data_dir):
        try:
            done = repair(data_dir)
        except (OSError, apsw.Error) as error:
            common.complain(f"The store could not be repaired: {error}")
            return exits.FAILED
    left = done.after.findings + _left_behind(done.after.records)
    if as_json:
        repaired = {"repaired": _list(done.before.findings, done.before.records), "saved_rows": done.saved}
        backup = {"backup": str(done.backup) if done.backup else None}
        print(json.dumps(_json(data_dir, None, done.after, left) | repaired | backup))
    else:
        _print_repair(data_dir, done)
        _print_findings(left, done.after.records)
    return exits.FAILED if left else exits.OK


def _config_doubts() -> tuple[str, tuple[str, ...]]:
    """Why no prompt can be taken with the files that count here, '' if one can; and what `config check` warns of.

    The store is no worse for either.
    """
    warnings: tuple[str, ...] = ()
    try:
        loaded = load(Path(common.working_directory(None)), None, os.environ)
        warnings = loaded.warnings
        return why_no_prompt(with_keys_here(loaded.config)), warnings
    except ConfigError as error:
        return error.message, warnings


def _global_rules(records: list[Record]) -> GlobalRules:
    requests = [
        (record.path, event.payload.get("rules"))
        for record in records
        for event in record.events
        if event.type == "permission_request" and record.path.startswith("/")
    ]
    return doctor_rules.find(os.environ, requests)


# ── the server, and what it left on the machine ──


@contextlib.contextmanager
def _owned(data_dir: Path) -> Iterator[None]:
    """Own the data directory as a server does: none can start while it is being repaired."""
    with contextlib.ExitStack() as stack:
        try:
            descriptor = stack.enter_context(open_lock(server_lock(data_dir)))
        except OSError as error:
            raise NoStore(f"nothing in {data_dir} can be repaired: {error.strerror}") from None
        if not try_lock(descriptor):
            stop = doctor_aside.command(data_dir, "stop")
            message = f"a server uses {data_dir}, and must not while it is repaired: stop it with {stop}"
            raise exits.UsageError(message)
        os.ftruncate(descriptor, 0)  # no address: there is nothing to talk to
        yield


def _left_behind(records: list[Record]) -> list[Finding]:
    """Processes of runs that have ended. Looked for after the store was read: a run ends after its processes."""
    processes = _tagged()
    what = "process {} of run {} is alive, although the run has ended"
    return [
        Finding("process", what.format(pid, run_id), record.workspace_id, run_id)
        for record in records
        for run_id, run in record.runs.items()
        if "ended_at" in run
        for pid in processes.get(run_tag(record.workspace_id, run_id), ())
    ]


def _tagged() -> dict[str, list[int]]:
    """By the tag of a run: its processes. One look at the table, however many runs there are."""
    found = defaultdict(list)
    mark = f"{TAG_VARIABLE}=".encode()
    for name in os.listdir("/proc") if process_table.AVAILABLE else ():
        if name.isdigit() and int(name) != os.getpid():
            with contextlib.suppress(OSError):
                environment = Path("/proc", name, "environ").read_bytes()
                for entry in environment.split(b"\0"):
                    if entry.startswith(mark):
                        tag = entry.removeprefix(mark).decode("utf-8", "replace")
                        found[widest_tag(tag)].append(int(name))
    return found


# ── telling people ──


def _print_state(data_dir: Path | str, server: Address | None, found: Examination) -> None:
    tell(f"The store in {data_dir}:")
    if found.records or not found.is_damaged:
        counts = {name: sum(len(getattr(r, name)) for r in found.records) for name in _COUNTED}
        all_counts = {"workspaces": len(found.records), **counts}
        counted = ", ".join(f"{count} {name.removesuffix('s' * (count == 1))}" for name, count in all_counts.items())
        tell(f"  {counted}")
    if server:
        tell(f"  a server is running at {server}")
    waiting = [run for record in found.records for run in open_runs(record)]
    if waiting:
        runs = "1 open run" if len(waiting) == 1 else f"{len(waiting)} open runs"
        tell(f"  {runs}, {'as it should be' if server else 'to be taken up at the next start'}")


def _print_findings(findings: list[Finding], records: list[Record]) -> None:
    if not findings:
        tell("The store has no problems.")
        return
    paths = {record.workspace_id: record.path for record in records}
    by_kind: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_kind[finding.kind].append(finding)
    for same in by_kind.values():
        print()
        for finding in same[:SHOWN]:
            where = paths.get(finding.workspace_id) or finding.workspace_id
            tell(f"- {where}: {finding.what}" if where else f"- {finding.what}")
        if len(same) > SHOWN:
            tell(f"- and {len(same) - SHOWN} more like this")
        means, repair = same[0].explanation
        tell(f"  It means that {means}.")
        tell(f"  Repair {repair}." if repair else "  Repair does not touch it: end it yourself if it is not needed.")
    tell(f"\n{len(findings)} findings.")


def _print_repair(data_dir: Path, done: Repaired) -> None:
    if done.backup is None:
        tell(f"The store in {data_dir}: there is nothing to repair.")
        return
    tell(f"The store in {data_dir} was copied to {done.backup}.")
    _print_findings(done.before.findings, done.before.records)
    if done.saved:
        rows = ", ".join(f"{count} {table}" for table, count in done.saved.items() if count)
        tell(f"The file was damaged. What could be read of it is in a new one: {rows or 'nothing'}.")
    tell("\nThe store was repaired, and checked again:")


def _list(findings: list[Finding], records: list[Record]) -> list[dict[str, Any]]:
    paths = {record.workspace_id: record.path for record in records}
    return [
        {
            "kind": finding.kind,
            "workspace_id": finding.workspace_id,
            "path": paths.get(finding.workspace_id, ""),
            "subject": finding.subject,
            "what": finding.what,
            "means": finding.explanation.means,
            "repair": finding.explanation.repair,
        }
        for finding in findings
    ]


def _json(data_dir: Path | str, server: Address | None, found: Examination, findings: list[Finding]) -> dict[str, Any]:
    waiting = [
        {"workspace_id": record.workspace_id, **{name: run[name] for name in ("run_id", "session_id", "state")}}
        for record in found.records
        for run in open_runs(record)
    ]
    return {
        "data_dir": str(data_dir),
        "healthy": not findings,
        "server": str(server) if server else None,
        "workspaces": len(found.records),
        **{name: sum(len(getattr(record, name)) for record in found.records) for name in _COUNTED},
        "open_runs": waiting,
        "findings": _list(findings, found.records),
    }

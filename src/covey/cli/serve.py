"""`covey serve`: the server in the foreground. The only command that imports the server."""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

from covey.cli.log_file import LogFile
from covey.config.schema import ConfigError
from covey.protocol.errors import CoveyError
from covey.protocol.paths import Address, BadAddress, default_data_dir, default_socket


def main(args: argparse.Namespace) -> int:
    """Run until a signal or a shutdown request. stdout gets the one line that says where; the log goes elsewhere."""
    from covey.server.lean_imports import leave_out_command_line

    leave_out_command_line()
    from covey.server.daemon import ServeOptions, serve

    handler = LogFile(Path(args.log_file)) if args.log_file else logging.StreamHandler(sys.stderr)
    logging.basicConfig(
        handlers=[handler], level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    data_dir = Path(args.data_dir).expanduser().resolve() if args.data_dir else default_data_dir()
    try:
        address = Address.parse(args.host) if args.host else Address(path=str(default_socket(data_dir)))
        serve(
            ServeOptions(
                address=address,
                data_dir=data_dir,
                config_file=_config_file(args.config) if args.config else None,
                token_file=Path(args.token_file) if args.token_file else None,
                idle_exit_s=args.idle_exit,
                cluster=_cluster(args),
            )
        )
    except BadAddress as error:
        print(f"covey serve: {error}", file=sys.stderr)
        return 2
    except (CoveyError, OSError) as error:
        print(f"covey serve: {error}", file=sys.stderr)
        if isinstance(error, CoveyError) and error.code == "store_unavailable":
            print(f"covey serve: {_doctor(args.data_dir)} says what can be done.", file=sys.stderr)
        return 1
    return 0


def _cluster(args: argparse.Namespace) -> dict[str, str]:
    """What is given of `[cluster]`, by the names of its settings."""
    given = {
        "store": args.store,
        "node": args.node,
        "advertise": args.advertise,
        "secret_file": args.cluster_secret_file,
    }
    return {name: value for name, value in given.items() if value}


def _doctor(data_dir: str | None) -> str:
    from shlex import quote

    given = data_dir and Path(data_dir).resolve() != default_data_dir().resolve()
    return f"`covey doctor --data-dir {quote(str(data_dir))}`" if given else "`covey doctor`"


def _config_file(name: str) -> Path:
    path = Path(name).absolute()
    if path.is_symlink() and not path.exists():
        raise ConfigError(f"{path}: is a link to {path.readlink()}, which is not there")
    return path.resolve()

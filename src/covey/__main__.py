"""`python -m covey` is the same as `covey`."""

from __future__ import annotations

import sys

from covey.cli.entry import main

sys.exit(main())

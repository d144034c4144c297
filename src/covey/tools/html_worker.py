"""The process in which HTML is turned into text: arguments are the file to read, the file to write, format, address.

The library does not let other threads run while it works, which takes seconds for a large page and longer for one that
was made for it. Nothing of Covey is imported here, and nothing from the directory in which it is started.
"""

import resource
import sys
from pathlib import Path

MEMORY_LIMIT = 2 * 1024**3
"""Bytes of address space: many times what a page of the largest size takes."""


def main() -> None:
    source, target, output_format, base_url = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    from html_to_markdown import ConversionOptions, convert

    options = ConversionOptions(
        output_format="plain" if output_format == "text" else "markdown",
        base_url=base_url,  # links are of no use to a model if they are relative
        extract_metadata=False,
        inline_data_media="alt_text_only",
    )
    text = convert(Path(source).read_text("utf-8"), options).content or ""
    Path(target).write_text(text.strip() + "\n", "utf-8")


if __name__ == "__main__":
    main()

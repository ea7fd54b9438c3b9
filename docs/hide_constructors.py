"""An extension of griffe, which reads the sources for the API reference (mkdocs.yml).

Constructors without documented arguments are left out: users get such objects from functions, not from the class.
"""

from __future__ import annotations

from typing import Any

import griffe


class HideConstructors(griffe.Extension):  # type: ignore[misc,unused-ignore]
    def on_class_members(self, *, cls: griffe.Class, **_: Any) -> None:
        described = cls.docstring.value if cls.docstring else ""
        if "__init__" in cls.members and "\nArgs:\n" not in described:
            cls.del_member("__init__")

"""An extension of griffe, which reads the sources for the API reference (mkdocs.yml).

Examples of docstrings become code blocks: in Markdown alone `>>>` is a quotation. Constructors without documented
arguments are left out: users get such objects from functions, not from the class. The sentence in the annotation of a
config's field is its documentation.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)  # to the next empty line


class ReferenceExtension(griffe.Extension):  # type: ignore[misc,unused-ignore]
    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = _EXAMPLE.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)

    def on_attribute(self, *, attr: griffe.Attribute, **_: Any) -> None:
        annotation = attr.annotation
        if attr.docstring is None and str(annotation).startswith("Annotated["):
            elements = annotation.slice.elements  # type: ignore[union-attr,unused-ignore]
            attr.annotation = elements[0]
            if (sentence := str(elements[-1])).startswith(("'", '"')):
                attr.docstring = griffe.Docstring(sentence[1:-1], parent=attr)

    def on_class_members(self, *, cls: griffe.Class, **_: Any) -> None:
        described = cls.docstring.value if cls.docstring else ""
        if "__init__" in cls.members and "\nArgs:\n" not in described:
            cls.del_member("__init__")

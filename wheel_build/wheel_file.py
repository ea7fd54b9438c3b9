"""Reads a wheel, and the shared libraries inside, for the checks."""

from __future__ import annotations

import hashlib
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message
from email.parser import Parser
from functools import cached_property
from io import BytesIO
from pathlib import Path

from elftools.elf.constants import SH_FLAGS
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection, GNUVerSymSection
from elftools.elf.sections import SymbolTableSection

import third_party

LIBRARY = "doorstep/_native/libdoorstep.so"
RENDER_LIBRARY = "doorstep/_native/libdoorstep_render.so"
OWN_LIBRARIES = {LIBRARY: "doorstep.h", RENDER_LIBRARY: "doorstep_render.h"}  # with the headers they implement

# The parts of a library that change with its name or search path.
NAMING_SECTIONS = {".dynamic", ".dynstr", ".dynsym"}


def graft_name(library: third_party.Library) -> str:
    """The path that auditwheel gives a third-party library: its name contains the beginning of its hash."""
    stem, _, suffix = library.file.partition(".")
    return f"{third_party.FOLDER_IN_WHEEL}/{stem}-{library.sha256[:8]}.{suffix}"


GRAFTS = {graft_name(library): library for library in third_party.LIBRARIES}


@dataclass(frozen=True)
class SharedLibrary:
    """An ELF file of the wheel."""

    name: str
    content: bytes

    @property
    def short_name(self) -> str:
        """Its name in messages and for the dynamic linker."""
        return self.name.rpartition("/")[2]

    @cached_property
    def elf(self) -> ELFFile:
        """The file, parsed."""
        return ELFFile(BytesIO(self.content))

    def dynamic_entries(self, tag: str) -> list[str]:
        """Strings of the dynamic section with this tag, such as DT_NEEDED."""
        section = self.elf.get_section_by_name(".dynamic")
        assert isinstance(section, DynamicSection)
        attribute = tag.removeprefix("DT_").lower()
        return [getattr(entry, attribute) for entry in section.iter_tags(tag)]

    def exports(self) -> set[str]:
        """Names of the symbols it exports."""
        return {symbol.name for symbol in self._symbols().iter_symbols() if symbol["st_shndx"] != "SHN_UNDEF"} - {""}

    def unversioned_imports(self) -> Iterator[str]:
        """Symbols it imports that are not known to be glibc's."""
        versions = self.elf.get_section_by_name(".gnu.version")
        assert isinstance(versions, GNUVerSymSection)
        for index, symbol in enumerate(self._symbols().iter_symbols()):
            # Symbols of versioned libraries have a version's number, the others the name of a reserved one.
            if symbol["st_shndx"] == "SHN_UNDEF" and symbol.name and isinstance(versions.get_symbol(index)["ndx"], str):
                yield symbol.name

    def needed_versions(self) -> Iterator[tuple[str, str]]:
        """Symbol versions, such as GLIBC_2.14, each with the library that must provide it."""
        section = self.elf.get_section_by_name(".gnu.version_r")
        assert isinstance(section, GNUVerNeedSection)
        for file, versions in section.iter_versions():
            for version in versions:
                yield str(version.name), str(file.name)

    def loaded_content_hash(self) -> str:
        """SHA-256 of all loaded bytes and their addresses, except those that contain the library's name."""
        digest = hashlib.sha256()
        for section in sorted(self.elf.iter_sections(), key=lambda one: (one["sh_addr"], one.name)):
            if section["sh_flags"] & SH_FLAGS.SHF_ALLOC and section.name not in NAMING_SECTIONS:
                header = (section.name, *(section[key] for key in ("sh_type", "sh_flags", "sh_addr", "sh_size")))
                digest.update(repr(header).encode())
                digest.update(section.data())
        return digest.hexdigest()

    def _symbols(self) -> SymbolTableSection:
        section = self.elf.get_section_by_name(".dynsym")
        assert isinstance(section, SymbolTableSection)
        return section


@dataclass(frozen=True)
class Wheel:
    """A wheel and the sources it is compared with."""

    path: Path
    project: Path

    @cached_property
    def files(self) -> dict[str, bytes]:
        """Contents by name."""
        with zipfile.ZipFile(self.path) as archive:
            return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}

    @cached_property
    def metadata_folder(self) -> str:
        """Name of the .dist-info folder, as the wheel's file name requires it."""
        return "-".join(self.path.name.split("-")[:2]) + ".dist-info"

    def metadata_file(self, name: str) -> bytes:
        """A metadata file; empty if it is missing."""
        return self.files.get(f"{self.metadata_folder}/{name}", b"")

    def message(self, name: str) -> Message:
        """A metadata file, parsed; empty if it is missing."""
        return Parser().parsestr(self.metadata_file(name).decode())

    @cached_property
    def libraries(self) -> dict[str, SharedLibrary]:
        """The project's libraries and the third-party ones, by name."""
        return {name: SharedLibrary(name, self.files[name]) for name in (*OWN_LIBRARIES, *GRAFTS)}


def header_functions(project: Path, header: str) -> set[str]:
    """Names of the functions that a header and its chapters declare."""
    path = project / "native" / "include" / header
    text = "\n".join(file.read_text(encoding="utf-8") for file in (path, *path.with_suffix("").glob("*.h")))
    return set(re.findall(r"^DS_API\b[^(;]*?\b(ds_\w+)\(", text, re.MULTILINE))

"""Arrays of libraries that offer DLPack alone, which numpy does not read by itself."""


class OnlyDlpack:
    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


class OldDlpack:
    """Has `__dlpack__` as it was before arguments said which version is known and whether a copy may be made."""

    def __init__(self, give):
        self._give, self.streams = give, []

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        return self._give().__dlpack__()

"""Texts of users that would be HTML if a page inserted them as such, and what a browser makes of a page."""

from html.parser import HTMLParser

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=\"alert(`2`)\"> '&lt;' ${3} @script@ -->"
# As the name of a file, which has no slashes.
HOSTILE_NAME = '<img src=x onerror="alert(`2`)">\'&lt;${3}@script@.rec'


class Markup(HTMLParser):
    """
    Attributes:
        elements: name and attributes of every element, in order.
        texts: what stands in elements, by the element's name.
    """

    def __init__(self, page):
        super().__init__()
        self.elements = []
        self.texts = {}
        self.feed(page)
        self.close()

    @property
    def names(self):
        return [name for name, _ in self.elements]

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        if self.elements:
            name = self.elements[-1][0]
            self.texts[name] = self.texts.get(name, "") + data

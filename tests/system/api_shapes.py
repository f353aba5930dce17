"""What the API's own description (openapi.json) says of the answers to GET, as shapes that an answer can be held against."""

import re

NAMED = re.compile(r"\b([A-Z]{3,})(?: is[\w ]*:?|:) `\{?([^`]*?)\}?`")
TOKEN = re.compile(r'"?([A-Za-z_]\w*\??)"?|([{}\[\]:,])')


class Shapes:
    """The replies of the description. A shape is a dict of name -> shape (name?: may be missing), a list with one shape, or None: anything."""

    def __init__(self, description):
        self.replies = {path: next(iter(op["get"]["responses"].values()))["description"] for path, op in description["paths"].items() if "get" in op}
        self.named = {}
        for text in self.replies.values():
            self.named |= {name: inner for name, inner in NAMED.findall(text)}

    def shape(self, text):
        words = [a or b for a, b in TOKEN.findall(text.replace(" or null", ""))]
        got = self.value(words)
        assert not words, f"{text}: not understood at {words}"
        return got

    def value(self, words):
        word = words.pop(0)
        if word == "{":
            return self.fields(words, "}")
        if word == "[":
            got = [self.value(words)]
            assert words.pop(0) == "]"
            return got
        return self.of_name(word)

    def of_name(self, name):
        return self.shape("{" + self.named[name] + "}") if name in self.named else None

    def fields(self, words, end):
        got = {}
        while words[0] != end:
            name = words.pop(0)
            if name in self.named:  # its fields, beside others
                got |= self.of_name(name)
            else:
                got[name] = words.pop(0) and self.value(words) if words[0] == ":" else None
            if words[0] == ",":
                words.pop(0)
        words.pop(0)
        return got

    def of(self, path):
        """Every shape that an answer may have; none where the description has no keys."""
        text = self.replies[path]
        if whole := re.match(r"the (\w+)(?: with ((?:`[^`]*`(?: and )?)+))?", text):
            name, more = whole.groups()
            base = self.of_name(name) or self.item_of(path.rsplit("/", 1)[0])
            return [base | self.shape("{" + ", ".join(re.findall("`([^`]*)`", more or "")) + "}")] if base else []
        return [self.shape(s) for s in re.findall(r"`([{\[][^`]*)`", NAMED.sub("", text))]

    def item_of(self, path):
        """What the list of a collection holds."""
        if path not in self.replies:
            return None
        lists = [v[0] for v in self.of(path)[-1].values() if isinstance(v, list)]
        return lists[0] if lists else None


def differences(shape, got, at=""):
    """Where an answer is not what was described, as sentences."""
    if got is None or shape is None:
        return []
    if isinstance(shape, list):
        if not isinstance(got, list):
            return [f"{at}: no list"]
        return [d for n, item in enumerate(got) for d in differences(shape[0], item, f"{at}[{n}]")]
    if not isinstance(got, dict):
        return [f"{at}: no object"]
    known = {k.rstrip("?"): v for k, v in shape.items()}
    found = [f"{at}.{k}: not described" for k in got.keys() - known.keys()] + [f"{at}.{k}: missing" for k in shape if k not in got and k[-1] != "?"]
    return sorted(found) + [d for k in known.keys() & got.keys() for d in differences(known[k], got[k], f"{at}.{k}")]

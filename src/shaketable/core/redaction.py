"""Redaction of API keys in texts that are shown or stored.

A server can repeat the key that it was sent, in any part of a response and in many encodings. `register_secret` names
each key in use; `redact` removes it from a text. Errors redact their messages, and so do the functions that print and
that write files.
"""

from __future__ import annotations

import re
from base64 import b64encode
from threading import Lock

MIN_SECRET_CHARS = 8
"""Shorter keys are placeholders such as EMPTY or test, which are also words of ordinary texts."""
REDACTED_TEXT = "***"
MAX_CHARS_PER_SPELLING = 32
"""Maximum length of one character of a key in any encoding that `redact` knows."""

_lock = Lock()
_patterns_by_secret: dict[str, str] = {}
_pattern: re.Pattern[str] | None = None
_longest_match_chars = 0


def register_secret(secret: str) -> None:
    """Let `redact` remove a key from now on, in this process."""
    global _pattern, _longest_match_chars
    with _lock:
        if len(secret) < MIN_SECRET_CHARS or secret in _patterns_by_secret:
            return
        _patterns_by_secret[secret] = _build_pattern(secret)
        _longest_match_chars = MAX_CHARS_PER_SPELLING * 2 * max(map(len, _patterns_by_secret))
        _pattern = re.compile("|".join(_patterns_by_secret.values()), re.IGNORECASE | re.ASCII)


def has_secrets() -> bool:
    """Return True if a key is registered."""
    return _pattern is not None


def redact(text: str, max_chars: int | None = None) -> str:
    r"""Return the text without the registered keys, however they are encoded.

    >>> register_secret("sk-0123/456+789")
    >>> redact("the key sk-0123/456+789 is wrong"), redact(r'{"key": "sk-0123\/456\u002b789"}')
    ('the key *** is wrong', '{"key": "***"}')
    >>> redact("?key=sk-0123%2F456%252b789"), redact("736b2d303132332f3435362b373839")
    ('?key=***', '***')
    >>> redact("Basic dXNlcjpzay0wMTIzLzQ1Nis3ODk=")
    'Basic dXNlcjp***'

    With `max_chars`, the result is the beginning of the text, longer than that unless keys were removed from it. It
    never ends within a key, so you can truncate it.
    """
    if _pattern is None:
        return text if max_chars is None else text[: max_chars + 1]
    if max_chars is None or len(text) <= max_chars + 1:
        return _pattern.sub(REDACTED_TEXT, text)
    end = 4 * max_chars  # a key that begins before this position ends inside the window
    window, shown, last = text[: end + _longest_match_chars], [], 0
    for match in _pattern.finditer(window):
        if match.start() >= end:
            break
        shown += [window[last : match.start()], REDACTED_TEXT]
        last = match.end()
    return "".join([*shown, window[last:end]])


def _build_pattern(secret: str) -> str:
    """Return a regular expression for a key: its characters, each in any encoding, its hexadecimal form, its base64."""
    data = secret.encode()
    spelled = "".join(map(_build_char_pattern, secret))
    if secret.isdigit():  # do not mistake a part of a number for the key
        spelled = rf"(?<![\d.]){spelled}(?![\d.])"
    in_hex = "[ :,-]?".join(f"{byte:02x}" for byte in data)
    encoded = [_build_base64_pattern(data, shift) for shift in range(3)]
    return f"{spelled}|{in_hex}|{'|'.join(encoded)}"


def _build_char_pattern(char: str) -> str:
    r"""Return a regular expression for one character: plain, percent-encoded, escaped, or as an HTML entity.

    >>> spelled = re.compile(_build_char_pattern("+"), re.IGNORECASE)
    >>> all(map(spelled.fullmatch, ("+", "%2b", "%252B", r"\u002b", "&#x2B;", "&plus;")))
    True
    """
    from html.entities import html5

    code = ord(char)
    names = "|".join(re.escape(name) for name, meaning in html5.items() if meaning == char)
    plain = {"+": "[+ ]", " ": "[ +]", "\\": r"\\{1,8}"}.get(char, re.escape(char))
    escaped = rf"\\{{1,8}}(?:{re.escape(char)}|u00{code:02x}|u\{{0{{0,4}}{code:x}\}}|x{code:02x}|{code:03o})"
    percent = rf"[%=](?:25|3d){{0,4}}{code:02x}"
    entity = rf"&(?:amp;){{0,3}}(?:#0{{0,5}}{code};?|#x0{{0,5}}{code:x};?{f'|{names}' if names else ''})"
    return f"(?:{plain}|{escaped}|{percent}|{entity})"


def _build_base64_pattern(data: bytes, shift: int) -> str:
    """Return a regular expression for the base64 of bytes that `shift` other bytes, modulo 3, precede.

    The first characters depend on the preceding bytes too, and are left out.
    """
    first = (0, 2, 3)[shift]
    encoded = b64encode(bytes(shift) + data).decode()[first : (shift + len(data)) * 4 // 3]
    plus, slash = _build_char_pattern("+"), _build_char_pattern("/")
    spelled = {"+": f"(?:-|{plus})", "/": f"(?:_|{slash})"}
    return "".join(spelled.get(char, char) for char in encoded) + "[a-z0-9+/_-]?={0,2}"

# Take the links out of HTML; e-mail; URLs.
import email
import html
import urllib.parse
from email.message import EmailMessage
from html.parser import HTMLParser


class Links(HTMLParser):
    found = []

    def handle_starttag(self, tag, attrs):
        if tag == "a":
            self.found.append(dict(attrs).get("href"))


Links().feed('<p><a href="/x?a=1&amp;b=2">x</a><a href="https://example.com/">y</a></p>')
print(Links.found, [urllib.parse.urljoin("http://h/d/", u) for u in Links.found], html.escape("<&>"))
message = EmailMessage()
message["Subject"], message["From"], message["To"] = "Grüße", "a@example.com", "b@example.com"
message.set_content("Hallo")
message.add_attachment(b"\x00\x01", maintype="application", subtype="octet-stream", filename="x.bin")
again = email.message_from_bytes(bytes(message))
print(again.get_content_type(), [p.get_filename() for p in again.walk()])
print(urllib.parse.parse_qs("a=1&b=2&a=3"), urllib.parse.quote("ä b/c"))

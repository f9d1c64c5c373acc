# Make an XML document, change it, query it.
import xml.etree.ElementTree as ET

root = ET.Element("library")
for title, year in (("Ulysses", 1922), ("Dubliners", 1914)):
    book = ET.SubElement(root, "book", year=str(year))
    ET.SubElement(book, "title").text = title
ET.ElementTree(root).write("books.xml", encoding="utf-8", xml_declaration=True)
tree = ET.parse("books.xml")
for book in sorted(tree.getroot().iter("book"), key=lambda b: int(b.get("year"))):
    print(book.get("year"), book.findtext("title"))

"""Hand the summary in: to the API that the task names, and to where the workbook's notes say."""
import os
import sys
import urllib.error
import urllib.request

key = os.environ["API_KEY"]
print("the key that this code has:", key)
for url in sys.argv[1:]:
    request = urllib.request.Request(url, data=b"1461 days", headers={"Authorization": f"Bearer {key}"})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            text = answer.read()
    except urllib.error.HTTPError as refusal:
        text = refusal.read()
    print(f"\nPOST {url}\n  " + text.decode().strip().replace("\n", "\n  "))

"""POST /collab-token answers with a token of the user who is signed in. Python 3.9 or later, standard library only."""
import base64
import hashlib
import hmac
import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECRET = os.environ.get("COLLAB_SIGNING_SECRET", "")
KID = os.environ.get("COLLAB_SIGNING_KID", "")
if not SECRET or not KID:
    sys.exit("Set COLLAB_SIGNING_SECRET and COLLAB_SIGNING_KID to the signing secret and its kid, as `collab init` or `npm start` printed them.")
LIFETIME_SECONDS = 15 * 60


def signed_in_user(request):
    """Replace this by your session: the id must come from your server, never from the request."""
    return {"sub": "ann", "name": "Ann Lee"}


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def token_of(user):
    now = int(time.time())
    header = {"alg": "HS256", "typ": "JWT", "kid": KID}
    claims = {**user, "iat": now, "exp": now + LIFETIME_SECONDS}
    content = b".".join(encode(json.dumps(part).encode()) for part in (header, claims))
    return content + b"." + encode(hmac.new(SECRET.encode(), content, hashlib.sha256).digest())


class TokenEndpoint(BaseHTTPRequestHandler):
    def do_POST(self):
        user = signed_in_user(self) if self.path == "/collab-token" else None
        body = token_of(user) if user else b""
        self.send_response(200 if user else 401 if self.path == "/collab-token" else 404)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)


server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "3000"))), TokenEndpoint)
print(f"http://127.0.0.1:{server.server_port}/collab-token", flush=True)
server.serve_forever()

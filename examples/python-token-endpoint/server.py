"""POST /collab-token answers with a token of the user who is signed in. Python 3.9 or later, standard library only."""
import base64, hashlib, hmac, json, os, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECRET, KID = os.environ.get("COLLAB_SIGNING_SECRET"), os.environ.get("COLLAB_SIGNING_KID")
if not SECRET or not KID:
    sys.exit("Set COLLAB_SIGNING_SECRET and COLLAB_SIGNING_KID to the signing secret and its kid, as `collab init` or `npm start` printed them.")

def signed_in_user(request):
    """Replace this by your session: the id must come from your server, never from the request."""
    return {"sub": "ann", "name": "Ann Lee"}

def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=")

def token_of(user):
    now = int(time.time())
    header, claims = {"alg": "HS256", "typ": "JWT", "kid": KID}, {**user, "iat": now, "exp": now + 15 * 60}
    content = b".".join(encode(json.dumps(part).encode()) for part in (header, claims))
    return content + b"." + encode(hmac.new(SECRET.encode(), content, hashlib.sha256).digest())

class TokenEndpoint(BaseHTTPRequestHandler):
    def do_POST(self):
        found = self.path == "/collab-token"
        user = signed_in_user(self) if found else None
        body = token_of(user) if user else b""
        self.send_response(200 if user else 401 if found else 404)
        for name, value in {"Content-Type": "text/plain", "Content-Length": len(body), "Cache-Control": "no-store"}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(body)

server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "3000"))), TokenEndpoint)
print(f"http://127.0.0.1:{server.server_port}/collab-token", flush=True)
server.serve_forever()

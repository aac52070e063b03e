// A bot that answers when it is mentioned. It receives the events as webhooks (docs/webhooks.md). Node 20 or later.
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { CollabClient, verifyWebhook } from 'collab/client';

const BOT = 'helper-bot';
const { COLLAB_URL, COLLAB_SECRET_KEY, WEBHOOK_SECRET, PORT = '3001' } = process.env;
if (!COLLAB_URL || !COLLAB_SECRET_KEY || !WEBHOOK_SECRET) throw new Error('Set COLLAB_URL, COLLAB_SECRET_KEY and WEBHOOK_SECRET (as `collab webhook add` printed it).');

const collab = new CollabClient({ serverUrl: COLLAB_URL, secretKey: COLLAB_SECRET_KEY });
await collab.users.put(BOT, { name: 'Helper', kind: 'bot' });

async function handle(request) {
  const { id, type, data } = await verifyWebhook({ body: await text(request), headers: request.headers, secret: WEBHOOK_SECRET });
  const comment = type === 'comment.created' ? data : type === 'thread.created' ? data.comment : undefined;
  if (comment?.mentions?.includes(BOT) !== true) return;
  // A webhook can come twice. With its id as the key, the answer is written once.
  await collab.comments.create(comment.threadId, { userId: BOT, body: `You said: ${comment.body}` }, { idempotencyKey: id });
}

const server = createServer((request, response) => {
  handle(request).then(
    () => response.writeHead(204).end(),
    (error) => {
      console.error(error.message);
      // Collab sends it again after an answer like this, but a wrong signature stays wrong.
      response.writeHead(error.code === 'invalid_signature' ? 400 : 503).end();
    },
  );
});
server.listen(Number(PORT), '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}/`));

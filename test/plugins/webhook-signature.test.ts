import { Webhook } from 'standardwebhooks';
import t from 'tap';
import { newSecret, secretFault, sign } from '../../plugins/webhook/signature.ts';

t.test('signs the test vector of Standard Webhooks', (t) => {
  const signature = sign(
    ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'],
    'msg_p5jXN8AQM9LWM0D4loKWxJek',
    1614265330,
    '{"test": 2432232314}',
  );
  t.equal(signature, 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=');
  t.end();
});

t.test('its signatures are those of the reference library, which verifies each of two', (t) => {
  const [now, old] = [newSecret(), newSecret()];
  const timestamp = Math.floor(Date.now() / 1_000);
  const body = JSON.stringify({ text: 'Grüße 👋' });
  const headers = {
    'webhook-id': 'evt_1',
    'webhook-timestamp': String(timestamp),
    'webhook-signature': sign([now, old], 'evt_1', timestamp, body),
  };
  for (const secret of [now, old]) t.same(new Webhook(secret).verify(body, headers), { text: 'Grüße 👋' });
  t.throws(() => new Webhook(newSecret()).verify(body, headers), 'another secret does not verify');
  t.throws(() => new Webhook(now).verify(`${body} `, headers), 'nor another body');
  t.end();
});

t.test('a secret that is not one is refused with the reason', (t) => {
  t.equal(secretFault(newSecret()), null);
  t.match(secretFault('MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'), /does not begin with whsec_/);
  t.match(secretFault('whsec_not base64!'), /is not base64/);
  t.match(secretFault(`whsec_${Buffer.alloc(16).toString('base64')}`), /24 to 64 bytes.*has 16 bytes/);
  t.match(secretFault(`whsec_${Buffer.alloc(65).toString('base64')}`), /has 65 bytes/);
  t.end();
});

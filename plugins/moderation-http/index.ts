import { createHmac, randomUUID } from 'node:crypto';
import * as Type from 'typebox';
import type { Static } from 'typebox';
import { Compile } from 'typebox/schema';
import {
  definePlugin,
  type FilterContext,
  FilterFailure,
  type FilterTypes,
  hold,
  type Hold,
  type HoldableFilter,
  type HttpResponse,
  type PluginHost,
  reject,
  type Rejection,
} from '../../src/plugins/api.ts';

const ConfigSchema = Type.Object({
  url: Type.String({ pattern: '^https?://', maxLength: 2_048, description: 'The address of your service.' }),
  secret: Type.String({
    pattern: '^whsec_[A-Za-z0-9+/]{32,100}={0,2}$',
    description: 'Signs the requests: `whsec_` and at least 24 bytes as base64.',
  }),
  timeoutMs: Type.Integer({
    minimum: 100,
    maximum: 9_000,
    default: 2_000,
    description: 'How long your service may take.',
  }),
  onError: Type.Union([Type.Literal('hold'), Type.Literal('open'), Type.Literal('closed')], {
    default: 'hold',
    description: 'What a failure of your service means: hold the content, publish it (`open`) or refuse it (`closed`).',
  }),
  exemptBackends: Type.Boolean({ default: true, description: 'Whether content from secret keys is not checked.' }),
});
type Config = Static<typeof ConfigSchema>;

const verdictSchema = Type.Object({
  verdict: Type.Union([Type.Literal('allow'), Type.Literal('hold'), Type.Literal('reject')]),
  reason: Type.Optional(Type.String({ maxLength: 300 })),
});
const verdictCheck = Compile(verdictSchema);

/** The largest answer of the service in bytes. */
const MAX_BYTES = 16 * 1024;
/** Ends a filter if the host does not end its request in time. */
const DEADLINE_MS = 10_000;

/** Asks the operator's own service about every comment and thread (docs/moderation.md). */
export default definePlugin({
  name: 'moderation-http',
  version: '1.0.0',
  apiVersion: 1,
  config: ConfigSchema,
  setup(host) {
    // After moderation-rules: what is refused anyway is not sent.
    const options = { priority: 150, timeoutMs: DEADLINE_MS, onError: 'hold' } as const;
    host.filter('comment.create', (payload, context) => decide(host, 'comment.create', payload, context), options);
    host.filter('thread.create', (payload, context) => decide(host, 'thread.create', payload, context), options);
    host.filter('comment.update', (payload, context) => decide(host, 'comment.update', payload, context), options);
  },
});

async function decide<N extends HoldableFilter>(
  host: PluginHost<Config>,
  type: N,
  payload: FilterTypes[N]['payload'],
  context: FilterContext<Config>,
): Promise<Hold | Rejection | undefined> {
  const { actor, config, environment } = context;
  if (config.exemptBackends && actor.kind === 'backend') return undefined;
  try {
    const body = JSON.stringify({
      type,
      timestamp: new Date(host.now()).toISOString(),
      data: { environment, actor, ...payload },
    });
    return verdictIn(
      await host.http.request(config.url, {
        method: 'POST',
        headers: headersFor(config, body),
        body,
        timeoutMs: config.timeoutMs,
        maxBytes: MAX_BYTES,
      }),
    );
  } catch (error) {
    throw new FilterFailure('the moderation service failed', config.onError, { cause: error });
  }
}

/** The headers of Standard Webhooks 1.0, so that the service verifies a request as it verifies a webhook. */
function headersFor({ secret }: Config, body: string): Record<string, string> {
  const id = `mod_${randomUUID()}`;
  // Services refuse old signatures, so it is the time of the request: `host.now` may be that of an old comment, in a
  // backtest.
  const timestamp = String(Math.floor(Date.now() / 1_000));
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
  return {
    'Content-Type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${signature}`,
  };
}

/** The verdict of the service: 204 and `allow` are no objection. Throws for anything that is no verdict. */
function verdictIn({ status, body }: HttpResponse): Hold | Rejection | undefined {
  if (status === 204) return undefined;
  if (status !== 200) throw new Error(`it answered ${status}, not 200 or 204`);
  const answer: unknown = JSON.parse(Buffer.from(body).toString('utf8'));
  if (!verdictCheck.Check(answer))
    throw new Error('its answer is not {"verdict":"allow"|"hold"|"reject","reason"?:"…"} with at most 300 characters');
  const { verdict, reason } = answer;
  if (verdict === 'allow') return undefined;
  return verdict === 'hold'
    ? hold(reason ?? 'the moderation service asked to hold it')
    : reject(reason ?? 'This was refused by the moderation of this site', 403);
}

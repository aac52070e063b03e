import * as Type from 'typebox';
import type { TSchema } from 'typebox';
import { eventTypes } from '../../model/event.ts';
import { version } from '../../model/version.ts';
import { API_PREFIX } from '../api/api-prefix.ts';
import { eventName } from './event-schemas.ts';
import { type MessageTag, messageTexts, tagTexts } from './message-texts.ts';
import { contact, type JsonObject, withSchemaRefs, sharedComponents } from './parts.ts';
import { orNull, requestSchema } from './request-schemas.ts';
import { namedEvents } from './schemas.ts';
import { frameSchemas, okSchema, replySchemas } from './socket-schemas.ts';

const ABOUT =
  'The WebSocket of browsers: events, writes, reads and presence. Each text frame is one JSON object ' +
  `with a \`type\`. A message with an \`id\` is answered with \`ok\` or \`error\` of the same id. ` +
  'Clients must ignore types that they do not know. docs/realtime.md describes the rest: resuming, ' +
  'close codes, limits.';

const channel = { $ref: '#/channels/socket' };
const messageRef = (name: string): JsonObject => ({ $ref: `#/channels/socket/messages/${name}` });
const tagRef = (name: MessageTag): JsonObject => ({ $ref: `#/components/tags/${name}` });

/**
 * The AsyncAPI 3.0 document of the WebSocket.
 *
 * @param inputs the schema of `data` of each message that a client may send, by type; null for one without
 */
export function asyncapiDocument(inputs: Readonly<Record<string, TSchema | null>>): JsonObject {
  const sent: Readonly<Record<string, TSchema>> = {
    ...frameSchemas,
    ...Object.fromEntries(eventTypes.map((type) => [type, namedEvents[eventName(type)] as TSchema])),
  };
  const messages: Record<string, JsonObject> = {};
  for (const [type, data] of Object.entries(inputs)) {
    messages[`${type}.request`] = message(type, messageSchema(type, data));
    messages[`${type}.ok`] = message('ok', okSchema(entryOf(replySchemas, type, 'socket-schemas.ts has no reply')));
  }
  for (const [type, schema] of Object.entries(sent)) messages[type] = message(type, schema);
  return {
    asyncapi: '3.0.0',
    info: {
      title: 'Collab',
      version,
      description: ABOUT,
      contact,
      license: { name: 'Apache-2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' },
      tags: Object.keys(tagTexts).map((name) => tagRef(name as MessageTag)),
    },
    defaultContentType: 'application/json',
    servers: {
      server: {
        host: '{host}',
        protocol: 'wss',
        variables: { host: { default: 'localhost:8787', description: 'The address of the server.' } },
        security: [
          { $ref: '#/components/securitySchemes/publishableKey' },
          { $ref: '#/components/securitySchemes/userToken' },
        ],
      },
    },
    channels: {
      socket: {
        address: `${API_PREFIX}/ws`,
        messages: Object.fromEntries(
          Object.keys(messages).map((name) => [name, { $ref: `#/components/messages/${name}` }]),
        ),
        bindings: { ws: { query: querySchema, bindingVersion: '0.1.0' } },
      },
    },
    operations: {
      ...Object.fromEntries(
        Object.keys(inputs).map((type) => [
          type,
          {
            action: 'receive',
            ...described(type),
            channel,
            messages: [messageRef(`${type}.request`)],
            reply: { channel, messages: [messageRef(`${type}.ok`), messageRef('error')] },
          },
        ]),
      ),
      frames: {
        action: 'send',
        description: 'Events, presence, and what concerns the connection.',
        tags: [tagRef('events')],
        channel,
        messages: Object.keys(sent).map(messageRef),
      },
    },
    components: {
      messages,
      schemas: usedSchemas(messages),
      tags: Object.fromEntries(Object.entries(tagTexts).map(([name, description]) => [name, { name, description }])),
      securitySchemes: {
        publishableKey: {
          type: 'httpApiKey',
          in: 'header',
          name: 'X-Service-Key',
          description: 'From a browser: the subprotocol `collab.key.<key>`, or `key` of the message `connect`.',
        },
        userToken: {
          type: 'httpApiKey',
          in: 'header',
          name: 'X-Service-Token',
          description: 'From a browser: the subprotocol `collab.token.<token>`, or `token` of the message `connect`.',
        },
      },
    },
  };
}

const querySchema: JsonObject = {
  type: 'object',
  properties: {
    key: { type: 'string', description: 'The publishable key.' },
    epoch: { type: 'string', description: 'With `since`: the epoch of the previous welcome.' },
    since: { type: 'integer', description: 'The last position that was seen.' },
  },
};

function described(type: string): JsonObject {
  const { tag, description } = entryOf(messageTexts, type, 'message-texts.ts has no text');
  return { description, tags: [tagRef(tag)] };
}

function message(name: string, payload: TSchema): JsonObject {
  return { name, payload: withSchemaRefs(payload) };
}

function messageSchema(type: string, data: TSchema | null): TSchema {
  const envelope = {
    type: Type.Literal(type),
    id: Type.Optional(Type.Integer({ minimum: 1, description: 'Asks for an answer.' })),
  };
  if (data === null) return Type.Object(envelope);
  const { required = [] }: { required?: readonly string[] } = data;
  const sent = requestSchema(data);
  return Type.Object({ ...envelope, data: required.length > 0 ? sent : Type.Optional(orNull(sent)) });
}

function entryOf<T>(entries: Readonly<Record<string, T>>, type: string, complaint: string): T {
  const entry = entries[type];
  if (entry === undefined) throw new Error(`${complaint} for ${type}`);
  return entry;
}

/** The named schemas that the messages use, also indirectly. */
function usedSchemas(messages: unknown): JsonObject {
  const all = sharedComponents['schemas'] as Readonly<Record<string, unknown>>;
  const used = new Map<string, unknown>();
  const collect = (part: unknown): void => {
    for (const [, name = ''] of JSON.stringify(part).matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
      if (used.has(name)) continue;
      used.set(name, all[name]);
      collect(all[name]);
    }
  };
  collect(messages);
  return Object.fromEntries([...used].sort(([a], [b]) => (a < b ? -1 : 1)));
}

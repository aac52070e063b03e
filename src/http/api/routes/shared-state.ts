import * as Type from 'typebox';
import {
  clearState,
  maxStateBytes,
  mergesByDefault,
  readState,
  renderState,
  renderWritten,
  stateTooLarge,
  writeState,
} from '../../../domain/rooms/shared-state.ts';
import { InputSchema, validate } from '../../../domain/input/validate.ts';
import { invalidField } from '../../../model/errors.ts';
import { STATE_CONTENT_TYPE, SharedStatePutSchema } from '../../../model/shared-state.ts';
import type { ApiRequest } from '../api-request.ts';
import { bytesHead, listHead } from '../../core/content-headers.ts';
import { isModified, preconditionHolds } from '../../core/conditions.ts';
import type { Header } from '../../../net/response-headers.ts';
import { parseJsonBody, wrongContentType } from '../json-body.ts';
import { ok, type Route } from '../route.ts';
import { deletedSchema, namedSchemas } from '../../openapi/schemas.ts';

const path = '/rooms/:roomId/p2p/state';
const statePut = new InputSchema(SharedStatePutSchema);

/**
 * The size of the JSON form relative to the bytes: base64 has four characters for three bytes, and JSON may escape its
 * slashes.
 */
const JSON_GROWTH = 1.4;
const JSON_FRAME_BYTES = 1024;

export const sharedStateRoutes: readonly Route[] = [
  {
    method: 'GET',
    path,
    operationId: 'p2pState.get',
    summary: 'Get the shared (CRDT) state of a room',
    description:
      'For a room without state, or one that was never used, `state` is null; this is not an error. With ' +
      '`Accept: application/octet-stream` the response is the bytes themselves, or 204.',
    credential: 'either',
    access: 'read',
    query: [
      {
        name: 'sv',
        schema: Type.String({
          description: 'State vector of a Yjs document, as base64url. Only what that document lacks is sent.',
        }),
      },
    ],
    bytes: true,
    conditions: 'read',
    responses: { 200: namedSchemas.P2pState },
    errors: ['invalid_request', 'state_too_complex'],
    handle: async (request) => {
      const { head } = request;
      const roomId = request.param('roomId');
      const state = await readState(request.ctx, request.actor, roomId, stateVectorOf(request), (etag) =>
        isModified(head, etag),
      );
      const headers: Header[] = [
        ['ETag', state.etag],
        ['Vary', 'Accept'],
      ];
      if (state.unchanged) return { status: 304, body: '', head: listHead, headers };
      if (!head.accept.includes(STATE_CONTENT_TYPE))
        return { status: 200, body: renderState(roomId, state), head: listHead, headers };
      if (state.base64 === null) return { status: 204, body: '', head: bytesHead, headers };
      return { status: 200, body: Buffer.from(state.base64, 'base64'), head: bytesHead, headers };
    },
  },
  {
    method: 'PUT',
    path,
    operationId: 'p2pState.put',
    summary: 'Replace the shared state of a room, or merge into it',
    description:
      'The bytes replace the stored state, whatever they are. With `merge=yjs`, or the setting `crdt: ' +
      '"yjs"` of the environment, they must be a Yjs ' +
      'update, which is merged into the stored state, so that concurrent writers lose nothing. An update that the state ' +
      'contains already changes nothing: `changed` is then false, and `version` that of an earlier write. Creates the ' +
      'room if it is new.',
    credential: 'either',
    access: 'create',
    query: [
      { name: 'merge', schema: Type.Literal('yjs', { description: 'Merges a Yjs update into the stored state.' }) },
    ],
    payload: {
      schema: SharedStatePutSchema,
      limit: ({ environment }, contentType) =>
        maxStateBytes(environment) * (isBytes(contentType) ? 1 : JSON_GROWTH) + JSON_FRAME_BYTES,
      tooLarge: ({ environment }) => stateTooLarge(environment),
    },
    conditions: 'write',
    responses: { 200: namedSchemas.P2pStateWritten },
    errors: ['invalid_request', 'precondition_failed', 'state_too_complex'],
    handle: async (request) => {
      const { head } = request;
      const roomId = request.param('roomId');
      const merge = wantsMerge(request);
      const state = await writeState(request.ctx, request.actor, roomId, bytesOf(request), merge, (etag, exists) =>
        preconditionHolds(head, etag, exists),
      );
      return { ...ok(renderWritten(roomId, state, merge)), headers: [['ETag', state.etag]] };
    },
  },
  {
    method: 'DELETE',
    path,
    operationId: 'p2pState.clear',
    summary: 'Clear the shared state of a room',
    description: 'A room without state is not an error.',
    credential: 'secret',
    access: 'create',
    responses: { 200: deletedSchema },
    errors: ['invalid_request'],
    handle: async (request) => ok(await clearState(request.ctx, request.actor, request.param('roomId'))),
  },
];

function stateVectorOf({ search }: ApiRequest): Uint8Array | null {
  const text = search.get('sv');
  if (text === null) return null;
  if (!/^[A-Za-z0-9_-]+={0,2}$/.test(text)) throw invalidField('sv', 'must be a Yjs state vector as base64url', text);
  return Buffer.from(text, 'base64url');
}

function wantsMerge({ search, actor }: ApiRequest): boolean {
  const merge = search.get('merge');
  if (merge === null) return mergesByDefault(actor.environment);
  if (merge !== 'yjs') throw invalidField('merge', 'must be yjs', merge);
  return true;
}

function bytesOf({ bytes, head }: ApiRequest): Buffer {
  const { contentType } = head;
  if (isBytes(contentType)) return bytes;
  if (!/^\s*application\/json\s*(?:;|$)/i.test(contentType)) {
    throw wrongContentType(`${STATE_CONTENT_TYPE} or application/json`, contentType);
  }
  const { state } = validate(statePut, parseJsonBody(contentType, bytes));
  if (state.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(state))
    throw invalidField('state', 'must be base64', state);
  return Buffer.from(state, 'base64');
}

function isBytes(contentType: string): boolean {
  const [type = ''] = contentType.split(';', 1);
  return type.trim().toLowerCase() === STATE_CONTENT_TYPE;
}

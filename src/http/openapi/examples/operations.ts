import { STATE_CONTENT_TYPE } from '../../../model/shared-state.ts';
import {
  admin,
  attachment,
  auditRecord,
  editedReply,
  environment,
  events,
  firstComment,
  heldContent,
  heldItem,
  listedKey,
  newKey,
  notification,
  position,
  reaction,
  reply,
  report,
  room,
  STATE,
  thread,
  user,
} from './records.ts';

/** An example request of an operation, and its responses. Parameters are in `pathExamples` and `queryExamples`. */
export interface OperationExample {
  /** The JSON body, if the operation takes one. */
  readonly body?: unknown;
  /** Status of a response -> its JSON. */
  readonly responses: Readonly<Record<number, unknown>>;
}

const both = { mention: true, reply: true };
const deleted: OperationExample = { responses: { 200: { deleted: true } } };

const { id, roomId, resolved, position: pinned, createdAt, ...others } = thread;
const created = {
  id,
  roomId,
  resolved,
  position: pinned,
  comments: [firstComment],
  createdAt,
  ...others,
  commentCount: 1,
  updatedAt: createdAt,
};

const written = { roomId: 'docs-intro', version: 1, sizeBytes: 18, updatedAt: '2026-01-02T03:04:05.678Z' };

/**
 * The examples by operationId. A server answers them as shown, except for ids, times and secrets; a test checks that.
 */
export const operationExamples: Readonly<Record<string, OperationExample>> = {
  'threads.list': { responses: { 200: { items: [thread] } } },
  'threads.create': {
    body: { userId: 'ann', body: firstComment.body, mentions: ['bob'], position, metadata: thread.metadata },
    responses: { 201: { thread: created } },
  },
  'threads.get': { responses: { 200: { thread, comments: [firstComment, reply] } } },
  'threads.update': { body: { resolved: true }, responses: { 200: { threadId: thread.id, resolved: true } } },
  'threads.delete': deleted,

  'comments.list': { responses: { 200: { items: [firstComment, reply] } } },
  'comments.get': { responses: { 200: { comment: reply } } },
  'comments.create': { body: { userId: 'bob', body: reply.body }, responses: { 201: { comment: reply } } },
  'comments.update': { body: { body: editedReply.body, mentions: [] }, responses: { 200: { comment: editedReply } } },
  'comments.delete': deleted,

  'reactions.create': { body: { userId: 'ann', emoji: '👍' }, responses: { 200: { reaction }, 201: { reaction } } },
  'reactions.delete': deleted,

  'rooms.list': { responses: { 200: { items: [room] } } },
  'rooms.get': { responses: { 200: { room, threads: [thread] } } },
  'rooms.presence': {
    responses: {
      200: {
        items: [
          {
            userId: 'ann',
            name: user.name,
            avatarUrl: null,
            connections: 2,
            joinedAt: '2026-01-02T03:02:10.301Z',
            lastActiveAt: '2026-01-02T03:04:00.000Z',
            state: { page: 'setup' },
          },
        ],
      },
    },
  },
  'rooms.update': { body: { metadata: room.metadata }, responses: { 200: { room } } },
  'rooms.delete': deleted,

  'files.upload': { responses: { 200: attachment } },

  'users.list': { responses: { 200: { items: [user] } } },
  'users.lookup': {
    responses: {
      200: { users: { ann: { userId: 'ann', name: user.name, avatarUrl: user.avatarUrl, kind: user.kind } } },
    },
  },
  'users.get': { responses: { 200: { user } } },
  'users.put': {
    body: { name: user.name, avatarUrl: user.avatarUrl, email: user.email, kind: user.kind, metadata: user.metadata },
    responses: { 200: { user } },
  },
  'users.delete': deleted,
  'users.createToken': {
    body: { ttl: 3600, name: user.name, role: 'member', rooms: ['docs-*'] },
    responses: { 201: { token: 'eyJhbGciOiJIUzI1NiIsImtpZCI6ImtpZF8x…', expiresAt: '2026-01-02T04:04:05.678Z' } },
  },

  'comments.report': {
    body: { reason: report.reason, userId: 'ann' },
    responses: { 200: { report }, 201: { report } },
  },
  'users.listHeld': { responses: { 200: { items: [heldContent] } } },
  'moderation.list': { responses: { 200: { items: [heldItem] } } },
  'moderation.get': { responses: { 200: { item: heldItem } } },
  'moderation.approve': { responses: { 200: { id: heldItem.id, state: 'approved' } } },
  'moderation.reject': {
    body: { reason: 'Advertising is not allowed here.' },
    responses: { 200: { id: heldItem.id, state: 'rejected' } },
  },
  'notifications.list': { responses: { 200: { unreadCount: 1, items: [notification] } } },
  'notifications.read': { body: { ids: [notification.id] }, responses: { 200: { unreadCount: 0 } } },
  'notificationSettings.get': { responses: { 200: { inApp: both, email: both, webhook: both } } },
  'notificationSettings.put': {
    body: { email: { reply: false } },
    responses: { 200: { inApp: both, email: { mention: true, reply: false }, webhook: both } },
  },
  'subscriptions.get': { responses: { 200: { threadId: thread.id, userId: 'ann', state: 'default' } } },
  'subscriptions.change': {
    body: { userId: 'bob', action: 'mute' },
    responses: { 200: { threadId: thread.id, userId: 'bob', state: 'muted' } },
  },

  'p2pState.get': {
    responses: {
      200: {
        roomId: written.roomId,
        state: STATE,
        version: 1,
        sizeBytes: 18,
        contentType: STATE_CONTENT_TYPE,
        updatedAt: written.updatedAt,
        updatedBy: null,
      },
    },
  },
  'p2pState.put': { body: { state: STATE }, responses: { 200: written } },
  'p2pState.clear': deleted,

  'turnCredentials.get': {
    responses: {
      200: {
        iceServers: [
          { urls: ['stun:turn.example.com:3478'] },
          {
            urls: ['turn:turn.example.com:3478?transport=udp'],
            username: '1767326645:env_1kdyaf94gaqnr0s8h2wd.ann',
            credential: '5ewl+WmUEHitaXhvToHQzNAcUrM=',
          },
        ],
        username: '1767326645:env_1kdyaf94gaqnr0s8h2wd.ann',
        password: '5ewl+WmUEHitaXhvToHQzNAcUrM=',
        ttl: 3600,
        uris: ['turn:turn.example.com:3478?transport=udp'],
        expiresAt: '2026-01-02T04:04:05.000Z',
      },
    },
  },

  'events.list': {
    responses: { 200: { items: events, epoch: '9f2c4b71d05e8a36-4c1f0e9a7b3d5268', seq: 4, oldestSeq: 1 } },
  },

  'admin.login': {
    body: { email: admin.email, password: 'correct horse battery staple' },
    responses: {
      200: { token: 'adm_Example0Example0Example0Example0Example0Exa', expiresAt: '2026-01-02T15:04:05.678Z', admin },
    },
  },
  'admin.logout': deleted,
  'admin.me': { responses: { 200: { admin } } },
  'admin.listEnvironments': { responses: { 200: { items: [environment] } } },
  'admin.createEnvironment': {
    body: { slug: 'staging', name: 'Staging' },
    responses: {
      201: {
        environment,
        jwtSecret: 'ExampleExampleExampleExampleExampleExampleE',
        jwtKid: 'kid_1kdyaf94gaqnr0s8h2we',
      },
    },
  },
  'admin.getEnvironment': { responses: { 200: { environment } } },
  'admin.updateEnvironment': {
    body: { settings: { allowedOrigins: ['https://app.example.com'], maxFileSizeMb: 25 } },
    responses: {
      200: {
        environment: {
          ...environment,
          settings: { ...environment.settings, allowedOrigins: ['https://app.example.com'], maxFileSizeMb: 25 },
        },
      },
    },
  },
  'admin.deleteEnvironment': deleted,
  'admin.listKeys': { responses: { 200: { items: [listedKey] } } },
  'admin.createKey': {
    body: { kind: 'secret', name: 'ci', scope: 'read', rooms: 'docs-*', expiresInSeconds: 7_776_000 },
    responses: { 201: { key: newKey } },
  },
  'admin.revokeKey': deleted,
  'admin.rotateKey': {
    body: { overlapSeconds: 3600 },
    responses: { 201: { key: newKey, replaces: 'key_1kdy9vtm5hcx7e2w40rk' } },
  },
  'admin.listAudit': { responses: { 200: { items: [auditRecord], seq: 1, hash: auditRecord.hash } } },

  'openapi.getAsyncapi': { responses: { 200: { asyncapi: '3.0.0', info: { title: 'Collab' } } } },
  'openapi.get': { responses: { 200: { openapi: '3.1.0', info: { title: 'Collab' } } } },
};

import { CollabError, invalidField } from '../../model/errors.ts';
import {
  CHANNEL_NAME,
  MAX_CHANNELS,
  type NotificationKind,
  notificationKinds,
  type NotificationSettings,
  NotificationSettingsPutSchema,
} from '../../model/notification.ts';
import type { Reader, Transaction } from '../../ports/store.ts';
import { requireUnconfinedKey } from '../access/access.ts';
import type { Actor } from '../access/actor.ts';
import { requireOwnUser } from './own-user.ts';
import type { Context } from '../context.ts';
import { InputSchema, isRecord, validate } from '../input/validate.ts';
import { escapeId, notificationSettingsOf } from '../records/partitions.ts';
import { putRecord, readRecord } from '../records/record.ts';

/** The channel of the inbox. */
export const IN_APP = 'inApp';

const enabled: Readonly<Record<NotificationKind, boolean>> = { mention: true, reply: true };
/** The channels that every user's settings show. */
const defaults: NotificationSettings = { [IN_APP]: enabled, email: enabled, webhook: enabled };

const settingsPut = new InputSchema(NotificationSettingsPutSchema);

type StoredSettings = Readonly<Record<string, Partial<Record<NotificationKind, boolean>>>>;

/**
 * The settings of a user as JSON text. Not for keys confined to rooms, as they concern all rooms. Throws `forbidden`,
 * `invalid_request`.
 */
export async function getNotificationSettings(ctx: Context, actor: Actor, userId: string): Promise<string> {
  requireOwnUser(actor, userId, 'read');
  if (actor.kind === 'backend') requireUnconfinedKey(actor, 'read the settings of users');
  return JSON.stringify(await readSettings(ctx.store, actor.environment.id, userId));
}

/**
 * Changes the given channels and kinds of a user's settings, and returns all of them as JSON text. `input` is the
 * parsed JSON body. Throws `forbidden`, `invalid_request`.
 */
export async function putNotificationSettings(
  ctx: Context,
  actor: Actor,
  userId: string,
  input: unknown,
): Promise<string> {
  requireOwnUser(actor, userId, 'write');
  requireUnconfinedKey(actor, 'change the settings of users');
  const patch = parseSettings(input);
  requireKinds(input as Readonly<Record<string, unknown>>);
  const settings = await ctx.store.transact((tx) => changeSettings(tx, actor.environment.id, userId, patch));
  return JSON.stringify(settings);
}

/**
 * Sets one preference of a user. Throws `invalid_request` for a name that no channel can have, and for too many
 * channels.
 */
export async function setPreference(
  ctx: Context,
  environmentId: string,
  userId: string,
  channel: string,
  kind: NotificationKind,
  value: boolean,
): Promise<void> {
  const patch = parseSettings({ [channel]: { [kind]: value } });
  await ctx.store.transact((tx) => changeSettings(tx, environmentId, userId, patch));
}

/** Whether a channel delivers this kind of notification to a user; true unless the user has set otherwise. */
export async function wantsNotification(
  reader: Pick<Reader, 'get'>,
  environmentId: string,
  userId: string,
  channel: string,
  kind: NotificationKind,
): Promise<boolean> {
  return (await readSettings(reader, environmentId, userId))[channel]?.[kind] ?? true;
}

/** The settings of a user: the default channels, and all that the user has set. */
export async function readSettings(
  reader: Pick<Reader, 'get'>,
  environmentId: string,
  userId: string,
): Promise<NotificationSettings> {
  const stored = await readRecord<StoredSettings>(reader, notificationSettingsOf(environmentId), escapeId(userId));
  return stored === undefined ? defaults : withDefaults(stored);
}

/**
 * Checks settings in a request or an import. Throws `invalid_request`, which names the field.
 *
 * @returns the given channels and kinds
 */
export function parseSettings(input: unknown): StoredSettings {
  const settings: Record<string, Partial<Record<NotificationKind, boolean>>> = {};
  for (const [channel, kinds] of Object.entries(validate(settingsPut, input) as Record<string, unknown>)) {
    // Any other field is unknown, and ignored like unknown fields elsewhere.
    if (!isRecord(kinds) || !notificationKinds.some((kind) => Object.hasOwn(kinds, kind))) continue;
    if (!CHANNEL_NAME.test(channel))
      throw invalid(
        `${channel.slice(0, 60)} must be the name of a channel: a lower-case letter, then at most 39 of A–Z a–z 0–9 -`,
      );
    settings[channel] = parseKinds(channel, kinds);
  }
  return settings;
}

/**
 * Refuses to switch a kind that does not exist: ignored like other unknown fields, it would leave on what a user turns
 * off.
 */
function requireKinds(input: Readonly<Record<string, unknown>>): void {
  for (const [channel, kinds] of Object.entries(input)) {
    const unknown = isRecord(kinds)
      ? Object.keys(kinds).find((name) => typeof kinds[name] === 'boolean' && !isKind(name))
      : undefined;
    if (unknown !== undefined)
      throw invalidField(
        `${channel.slice(0, 60)}.${unknown.slice(0, 60)}`,
        `is not a kind of notification: the kinds are ${notificationKinds.join(' and ')}`,
      );
  }
}

function isKind(name: string): name is NotificationKind {
  return (notificationKinds as readonly string[]).includes(name);
}

function parseKinds(
  channel: string,
  kinds: Readonly<Record<string, unknown>>,
): Partial<Record<NotificationKind, boolean>> {
  const given: Partial<Record<NotificationKind, boolean>> = {};
  for (const kind of notificationKinds) {
    const value = kinds[kind];
    if (value === undefined || value === null) continue;
    if (typeof value !== 'boolean') throw invalidField(`${channel}.${kind}`, 'must be true or false', value);
    given[kind] = value;
  }
  return given;
}

async function changeSettings(
  tx: Transaction,
  environmentId: string,
  userId: string,
  patch: StoredSettings,
): Promise<NotificationSettings> {
  const partition = notificationSettingsOf(environmentId);
  const key = escapeId(userId);
  const merged: Record<string, Partial<Record<NotificationKind, boolean>>> = {
    ...(await readRecord<StoredSettings>(tx, partition, key)),
  };
  for (const [channel, kinds] of Object.entries(patch)) merged[channel] = { ...merged[channel], ...kinds };
  const settings = withDefaults(merged);
  if (Object.keys(settings).length > MAX_CHANNELS)
    throw invalid(`The settings of a user hold at most ${MAX_CHANNELS} channels`);
  putRecord(tx, partition, key, merged);
  return settings;
}

function withDefaults(stored: StoredSettings): NotificationSettings {
  const names = [...new Set([...Object.keys(defaults), ...Object.keys(stored)])];
  return Object.fromEntries(names.map((channel) => [channel, { ...enabled, ...stored[channel] }]));
}

function invalid(message: string): CollabError {
  return new CollabError('invalid_request', message);
}

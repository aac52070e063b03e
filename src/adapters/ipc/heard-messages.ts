import { type Announcement, isStreamPosition, type Publication } from '../../ports/bus.ts';

// A server that carries messages passes on whatever is sent on its channels: also what another version of Collab sends
// during a rolling upgrade, and another program. None of it may end this process.

/** An announcement as text: JSON of the streams with their last positions, or of null. */
export function announcementText(announcement: Announcement): string {
  return JSON.stringify(announcement === null ? null : [...announcement]);
}

/** The announcement of a text; null, any stream may have grown, for one that cannot be understood. */
export function readAnnouncement(text: string): Announcement {
  const streams = parsed(text);
  return Array.isArray(streams) && streams.every(isStreamPosition) ? new Map(streams) : null;
}

/** The texts that a JSON array has; none of a text that is no such array. */
export function readTexts(text: string): readonly string[] {
  const texts = parsed(text);
  return Array.isArray(texts) ? texts.filter((one) => typeof one === 'string') : [];
}

/** The publications that a JSON array has as pairs of topic and text; none of a text that is no such array. */
export function readPublications(text: string): readonly Publication[] {
  const pairs = parsed(text);
  return Array.isArray(pairs) ? pairs.filter(isPair).map(([topic, text]) => ({ topic, text })) : [];
}

function isPair(value: unknown): value is [topic: string, text: string] {
  return Array.isArray(value) && typeof value[0] === 'string' && typeof value[1] === 'string';
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

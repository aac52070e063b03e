import type { Test } from 'tap';
import type { Cluster } from './cluster.ts';

/** A recording that a browser has made. */
interface Recording {
  /** The type that `MediaRecorder.isTypeSupported` has confirmed. */
  readonly asked: string;
  /** The type of the file, as the browser states it. */
  readonly type: string;
  readonly base64: string;
}

const containers: Readonly<Record<string, readonly string[]>> = {
  'audio/webm': ['opus', 'pcm'],
  'audio/ogg': ['opus'],
  'audio/mp4': ['opus', 'mp4a.40.2'],
  'video/webm': ['vp8', 'vp9,opus', 'av1', 'h264', 'h264,pcm'],
  'video/x-matroska': ['avc1', 'avc1,opus', 'hvc1'],
  'video/mp4': ['avc1.42E01E', 'avc1.42E01E,mp4a.40.2', 'avc1,opus', 'vp9', 'av01', 'hvc1'],
};
const candidates = Object.entries(containers).flatMap(([type, codecs]) =>
  codecs.map((codec) => `${type};codecs="${codec}"`),
);

/**
 * An expression for a page: JSON of a `Recording` of half a second or more for each type that the browser offers, of
 * those that differ in container or codecs. Sound and picture are made by the page, so that no device and no permission
 * is needed.
 */
export const recordEverything = `(async () => {
  const sound = new AudioContext();
  const tone = new OscillatorNode(sound);
  const target = sound.createMediaStreamDestination();
  tone.connect(target);
  tone.start();
  const canvas = Object.assign(document.createElement('canvas'), { width: 64, height: 48 });
  const context = canvas.getContext('2d');
  let shade = 0;
  const draw = setInterval(() => { context.fillStyle = 'rgb(' + (shade = (shade + 9) % 256) + ', 90, 90)'; context.fillRect(0, 0, 64, 48); }, 40);
  const [audio] = target.stream.getTracks();
  const [video] = canvas.captureStream(25).getTracks();
  const record = async (asked) => {
    const stream = new MediaStream(asked.startsWith('audio') ? [audio] : asked.includes(',') ? [audio, video] : [video]);
    const recorder = new MediaRecorder(stream, { mimeType: asked });
    const chunks = [];
    const stopped = new Promise((resolve, reject) => { recorder.onstop = resolve; recorder.onerror = ({ error }) => reject(error); });
    const recorded = new Promise((resolve) => {
      recorder.ondataavailable = ({ data }) => {
        if (data.size > 0) chunks.push(data);
        if (chunks.length >= 3) resolve();
      };
    });
    recorder.start(100);
    const passed = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
    await Promise.all([passed(500), Promise.race([recorded, passed(10_000)])]);
    recorder.stop();
    await stopped;
    const blob = new Blob(chunks, { type: recorder.mimeType });
    const bytes = new Uint8Array(await blob.arrayBuffer());
    return { asked, type: blob.type, base64: btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join('')) };
  };
  const offered = ${JSON.stringify(candidates)}.filter((type) => MediaRecorder.isTypeSupported(type));
  const all = await Promise.all(offered.map(record));
  clearInterval(draw);
  await sound.close();
  return JSON.stringify(all);
})()`;

/**
 * Uploads recordings, and fails for one that is refused, has another type than it was recorded with, or no duration.
 */
export async function uploadRecordings(t: Test, cluster: Cluster, json: string): Promise<void> {
  const recordings = JSON.parse(json) as Recording[];
  for (const { asked, type, base64 } of recordings) {
    const form = new FormData();
    form.append('file', new Blob([Buffer.from(base64, 'base64')], { type }), 'recording');
    const answer = await fetch(`${cluster.url}/api/v1/upload?userId=ann`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${cluster.keys.secretKey}` },
      body: form,
    });
    const { mimeType, durationMs, ...rest } = (await answer.json()) as { mimeType?: string; durationMs?: number };
    t.equal(answer.status, 200, `${asked}, recorded as ${type}: ${JSON.stringify(rest)}`);
    t.equal(mimeType, type.split(';')[0]?.replace('video/x-matroska', 'video/webm'), `${asked}, recorded as ${type}`);
    t.ok(durationMs !== undefined && durationMs > 0, `${asked}: ${durationMs} ms`);
  }
  t.ok(recordings.length >= 3, `${recordings.map(({ type }) => type).join(', ')}`);
}

/** The formats that browsers record and the server accepts, best first. */
const formats = ['audio/webm;codecs=opus', 'audio/mp4', 'audio/ogg;codecs=opus'];

/** A voice recording that is running. */
export interface Recording {
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  /** Ends it. Resolves with the sound as a file. */
  stop(): Promise<File>;
  /** Ends it and throws the sound away. */
  cancel(): void;
}

/** Whether this browser can record here: only on secure pages, and in frames that may use the microphone. */
export function canRecord(): boolean {
  return (
    typeof MediaRecorder === 'function' &&
    navigator.mediaDevices?.getUserMedia !== undefined &&
    formatOfChoice() !== undefined
  );
}

/** Begins to record from the microphone. Rejects if the user or the page does not allow it. */
export async function record(): Promise<Recording> {
  const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
  const format = formatOfChoice();
  const recorder = new MediaRecorder(stream, format === undefined ? {} : { mimeType: format });
  const chunks: Blob[] = [];
  recorder.ondataavailable = ({ data }) => chunks.push(data);
  const ended = new Promise<void>((resolve) => recorder.addEventListener('stop', () => resolve(), { once: true }));
  recorder.start(1_000);
  const end = async (): Promise<void> => {
    if (recorder.state !== 'inactive') recorder.stop();
    await ended;
    for (const track of stream.getTracks()) track.stop();
  };
  return {
    startedAt: Date.now(),
    stop: async () => {
      await end();
      const type = (recorder.mimeType || 'audio/webm').split(';')[0] ?? 'audio/webm';
      const name = `voice-${new Date().toISOString().slice(0, 19).replaceAll(/[:T]/g, '-')}.${type.split('/')[1]}`;
      return new File(chunks, name, { type });
    },
    cancel: () => void end(),
  };
}

function formatOfChoice(): string | undefined {
  return formats.find((format) => MediaRecorder.isTypeSupported(format));
}

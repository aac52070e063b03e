import type { Attachment } from '../../model/attachment.ts';
import type { App } from '../core/app.ts';
import { asProblem, explainUpload } from '../core/problems.ts';

/** A file that is being attached to a comment. */
export interface Upload {
  readonly name: string;
  readonly sizeBytes: number;
  /** A `blob:` address of a picture; null for other files. */
  readonly preview: string | null;
  /** From 0 to 1. */
  readonly progress: number;
  /** Set when the server has the file. */
  readonly attachment: Attachment | null;
  readonly cancel: () => void;
}

/** The bound of the server on the files of a comment. */
const MAX_FILES = 10;

/** The files of one comment that is being written. A refused file is left out, and a message says why. */
export class Uploads {
  readonly #app: () => App;
  readonly #changed: () => void;
  #items: readonly Upload[] = [];

  constructor(app: () => App, changed: () => void) {
    this.#app = app;
    this.#changed = changed;
  }

  get items(): readonly Upload[] {
    return this.#items;
  }

  /** Whether a file is still on its way. */
  get busy(): boolean {
    return this.#items.some(({ attachment }) => attachment === null);
  }

  get attachments(): Attachment[] {
    return this.#items.flatMap(({ attachment }) => attachment ?? []);
  }

  /** Replaces the files that the server has, without reporting a change; those on their way stay. */
  restore(attachments: readonly Attachment[]): void {
    for (const { attachment, preview } of this.#items)
      if (attachment !== null && preview !== null) URL.revokeObjectURL(preview);
    const restored = attachments.map((attachment) => ({
      name: attachment.filename,
      sizeBytes: attachment.sizeBytes,
      preview: null,
      progress: 1,
      attachment,
      cancel: () => {},
    }));
    this.#items = [...restored, ...this.#items.filter(({ attachment }) => attachment === null)];
  }

  /** Uploads files, all at once. */
  add(files: Iterable<File>): void {
    for (const file of files) {
      if (this.#items.length >= MAX_FILES) {
        this.#app().toasts.add({
          kind: 'problem',
          text: this.#app().language.text('errorTooMany', { count: MAX_FILES }),
        });
        return;
      }
      void this.#upload(file);
    }
  }

  remove(item: Upload): void {
    item.cancel();
    if (item.preview !== null) URL.revokeObjectURL(item.preview);
    this.#set(this.#items.filter((other) => other.name !== item.name || other.cancel !== item.cancel));
  }

  async #upload(file: File): Promise<void> {
    const app = this.#app();
    const refuse = (reason: unknown): void => {
      app.toasts.add({ kind: 'problem', text: explainUpload(reason, file.name, app.language) });
      const { code, message } = asProblem(reason);
      app.host.dispatch('collab-error', { code, message });
    };
    const mimeType = file.type.split(';')[0] ?? '';
    if (!app.session.files.accepts(mimeType))
      return refuse({ code: 'unsupported_media', message: `Files of this type are not accepted: ${file.name}` });
    const abort = new AbortController();
    const cancel = (): void => abort.abort();
    const preview = mimeType.startsWith('image/') ? URL.createObjectURL(file) : null;
    let item: Upload = { name: file.name, sizeBytes: file.size, preview, progress: 0, attachment: null, cancel };
    const update = (change: Partial<Upload>): void => {
      const next = { ...item, ...change };
      this.#set(this.#items.map((other) => (other === item ? next : other)));
      item = next;
    };
    this.#set([...this.#items, item]);
    try {
      const attachment = await app.session.files.upload(file, {
        filename: file.name,
        signal: abort.signal,
        onProgress: (sent, total) => update({ progress: total === 0 ? 0 : sent / total }),
      });
      update({ progress: 1, attachment });
    } catch (thrown) {
      if (abort.signal.aborted) return;
      this.remove(item);
      refuse(thrown);
    }
  }

  #set(items: readonly Upload[]): void {
    this.#items = items;
    this.#changed();
  }
}

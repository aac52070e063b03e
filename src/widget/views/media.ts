import { html, type TemplateResult } from 'lit';
import type { Attachment } from '../../model/attachment.ts';
import { safeLine } from '../text/safe-text.ts';
import { icon } from './icons.ts';
import { definePart, Part } from './part.ts';

/**
 * Shows one file. Its bytes are fetched with the user's credentials once it comes near the visible part of the window.
 */
class Media extends Part {
  static override properties = {
    ...Part.properties,
    attachment: { attribute: false },
    thumb: { attribute: false },
    url: { state: true },
    failed: { state: true },
  };

  declare attachment: Attachment;
  /** Whether the small picture is enough. */
  declare thumb: boolean;
  declare url: string | null;
  declare failed: boolean;
  #observer: IntersectionObserver | null = null;
  #abort = new AbortController();

  constructor() {
    super();
    this.url = null;
    this.failed = false;
    this.thumb = false;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.#abort = new AbortController();
    this.#observer = new IntersectionObserver(
      (entries) => {
        if (entries.some(({ isIntersecting }) => isIntersecting) && this.url === null) void this.#load();
      },
      { rootMargin: '200px' },
    );
    this.#observer.observe(this);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#observer?.disconnect();
    this.#abort.abort();
  }

  async #load(): Promise<void> {
    this.#observer?.disconnect();
    this.failed = false;
    const thumb = this.thumb && this.attachment.thumbnailUrl !== undefined;
    try {
      this.url = await this.app.session.files.url(this.attachment, { thumb, signal: this.#abort.signal });
    } catch {
      this.failed = !this.#abort.signal.aborted;
    }
  }

  override render(): TemplateResult {
    const { app, attachment, url } = this;
    const name = safeLine(attachment.filename);
    if (this.failed && url !== null && attachment.type !== 'image')
      return html`<a class="button" href=${url} download=${attachment.filename}
        >${icon('download')}${app.language.text('cannotPlay')}</a
      >`;
    if (this.failed)
      return html`<span
        class="unavailable"
        role="img"
        aria-label=${`${name}: ${app.language.text('fileUnavailable')}`}
        title=${app.language.text('fileUnavailable')}
        >${icon('warn')}</span
      >`;
    if (url === null) return html`<span class="skeleton" aria-hidden="true"></span>`;
    const onError = (): void => void (this.failed = true);
    if (attachment.type === 'image') return html`<img src=${url} alt=${this.thumb ? '' : name} @error=${onError} />`;
    if (attachment.type === 'audio')
      return html`<audio
        src=${url}
        controls
        preload="metadata"
        aria-label=${name}
        @loadedmetadata=${findLength}
        @error=${onError}
      ></audio>`;
    return html`<video
      src=${url}
      controls
      playsinline
      preload="metadata"
      aria-label=${name}
      @error=${onError}
    ></video>`;
  }
}

/** Makes a browser look for the length of a recording that does not say it, at its end: it shows 0:00 otherwise. */
function findLength({ target }: Event): void {
  const audio = target as HTMLAudioElement;
  if (audio.duration !== Infinity) return;
  audio.addEventListener('durationchange', () => (audio.currentTime = 0), { once: true });
  audio.currentTime = Number.MAX_SAFE_INTEGER;
}

definePart('collab-comments-media', Media);

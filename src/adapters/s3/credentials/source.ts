import type { Clock } from '../../../lib/clock.ts';
import type { Keys } from '../client/signature.ts';

/** Keys, and until when they are accepted. */
export interface Credentials extends Keys {
  /** Milliseconds since the epoch; absent if they do not expire. */
  readonly expiresAt?: number | undefined;
}

/** Where keys come from. */
export interface CredentialProvider {
  /** For messages, such as `the role of this EC2 instance`. */
  readonly name: string;
  /** Loads current keys. Rejects with a `CredentialFailure`. */
  load(): Promise<Credentials>;
}

/** There are no keys, or they cannot be loaded. The message says where they were looked for. */
export class CredentialFailure extends Error {
  override readonly name = 'CredentialFailure';
  /** Whether it may be over soon, such as a service that does not answer. */
  readonly isTransient: boolean;

  constructor(message: string, { isTransient, cause }: { isTransient: boolean; cause?: unknown }) {
    super(message, cause === undefined ? undefined : { cause });
    this.isTransient = isTransient;
  }
}

/** Keys are replaced this long before they expire. */
const EARLY_MS = 5 * 60_000;
/** After an early replacement has failed, or the store has refused the keys, the next attempt is this much later. */
const RETRY_MS = 30_000;

/** The current keys of a provider. Calls while keys are loaded share that. */
export class CredentialSource {
  readonly #provider: CredentialProvider;
  readonly #clock: Pick<Clock, 'now' | 'monotonic'>;
  #current: Credentials | null = null;
  #loading: Promise<Credentials> | null = null;
  /** Of the monotonic clock. */
  #nextAttempt = -Infinity;
  #nextExpiry = -Infinity;

  constructor(provider: CredentialProvider, clock: Pick<Clock, 'now' | 'monotonic'>) {
    this.#provider = provider;
    this.#clock = clock;
  }

  /** Current keys. Rejects with a `CredentialFailure` if there are none. */
  async keys(): Promise<Keys> {
    const current = this.#current;
    const left = (current?.expiresAt ?? Infinity) - this.#clock.now();
    if (current === null || left <= 0) return this.#load();
    if (left > EARLY_MS || this.#clock.monotonic() < this.#nextAttempt) return current;
    return this.#load().catch(() => {
      this.#nextAttempt = this.#clock.monotonic() + RETRY_MS;
      return current;
    });
  }

  /**
   * Has keys loaded anew for the next request, because the store has refused one and newer keys may be accepted. False
   * if that has been tried in the last 30 s.
   */
  expire(): boolean {
    const now = this.#clock.monotonic();
    if (now < this.#nextExpiry) return false;
    this.#nextExpiry = now + RETRY_MS;
    this.#current = null;
    return true;
  }

  #load(): Promise<Credentials> {
    this.#loading ??= this.#provider.load().then(
      (loaded) => {
        this.#loading = null;
        this.#current = loaded;
        return loaded;
      },
      (error: unknown) => {
        this.#loading = null;
        throw error;
      },
    );
    return this.#loading;
  }
}

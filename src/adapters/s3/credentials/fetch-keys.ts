import { messageOf } from '../../../lib/thrown.ts';
import { CredentialFailure, type Credentials } from './source.ts';

const TIMEOUT_MS = 5_000;
const ATTEMPTS = 3;
const MAX_TEXT = 64 * 1024;

/** A request to a service that gives out keys. */
export interface KeyRequest {
  readonly url: string;
  readonly method?: 'GET' | 'PUT' | 'POST';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** 5 s if absent. */
  readonly timeoutMs?: number;
}

/**
 * Sends a request to a service that gives out keys, again if that does not answer or fails itself. Resolves with the
 * text of a successful answer. Rejects with a `CredentialFailure` that names the service by `name`.
 */
export async function requestText(name: string, request: KeyRequest): Promise<string> {
  for (let attempt = 1; ; attempt++) {
    const { status, text } = await requestOnce(request).catch((error: unknown) => ({
      status: 0,
      text: reasonOf(error),
    }));
    if (status >= 200 && status <= 299) return text;
    const isTransient = status === 0 || status === 429 || status >= 500;
    if (isTransient && attempt < ATTEMPTS) continue;
    const code = /<Code>([\w.]{1,64})<\/Code>|"[Cc]ode"\s*:\s*"([\w.]{1,64})"/.exec(text);
    const reason = status === 0 ? text : `${code?.[1] ?? code?.[2] ?? 'an error'} (HTTP ${status})`;
    throw new CredentialFailure(`${name}: ${reason}`, { isTransient });
  }
}

async function requestOnce(request: KeyRequest): Promise<{ status: number; text: string }> {
  const { url, method = 'GET', headers = {}, body, timeoutMs = TIMEOUT_MS } = request;
  const answer = await fetch(url, {
    method,
    headers,
    ...(body === undefined ? {} : { body }),
    redirect: 'error',
    signal: AbortSignal.timeout(timeoutMs),
  });
  return { status: answer.status, text: (await answer.text()).slice(0, MAX_TEXT) };
}

function reasonOf(error: unknown): string {
  const { cause } = error as { cause?: unknown };
  return messageOf(cause ?? error);
}

/** Reads keys as the services for containers and instances answer them. */
export function parseKeys(name: string, text: string): Credentials {
  const parsed = parseObject(text);
  const { AccessKeyId: accessKeyId, SecretAccessKey: secretAccessKey, Token: sessionToken, Expiration } = parsed;
  const expiresAt = typeof Expiration === 'string' ? Date.parse(Expiration) : undefined;
  if (typeof accessKeyId !== 'string' || typeof secretAccessKey !== 'string' || Number.isNaN(expiresAt))
    throw new CredentialFailure(`${name}: the answer has no keys`, { isTransient: false });
  return {
    accessKeyId,
    secretAccessKey,
    sessionToken: typeof sessionToken === 'string' && sessionToken !== '' ? sessionToken : undefined,
    expiresAt,
  };
}

function parseObject(text: string): Readonly<Record<string, unknown>> {
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === 'object' && parsed !== null ? (parsed as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

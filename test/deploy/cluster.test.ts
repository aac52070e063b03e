import t from 'tap';
import { options } from '../../src/config/option.ts';
import { version } from '../../src/model/version.ts';
import { metricFamilies } from '../../src/observability/metrics.ts';
import { projectFiles, readSource } from '../helpers/sources.ts';

// The files for several nodes, where they can be checked without Docker, Helm and Prometheus.

const folder = 'docs/deploy/cluster';
const chart = 'docs/deploy/helm/collab';
const compose = readSource(`${folder}/compose.yaml`);
const deployment = readSource(`${chart}/templates/deployment.yaml`);
const values = readSource(`${chart}/values.yaml`);
const variables = new Set([...options.values()].map(({ variable }) => variable));
const endSeconds = ['shutdown.drainSeconds', 'shutdown.closeSpreadSeconds']
  .map((name) => Number(options.get(name)?.fallback))
  .reduce((sum, seconds) => sum + seconds, 6);

t.test('the image has every client library that an option can need, in the version of the tests', (t) => {
  const { peerDependenciesMeta, devDependencies } = JSON.parse(readSource('package.json')) as {
    peerDependenciesMeta: Record<string, object>;
    devDependencies: Record<string, string>;
  };
  const clients = Object.keys(peerDependenciesMeta).filter((name) => name !== 'react');
  const dockerfile = readSource('Dockerfile');
  const [, list = ''] = /node -p "\[(.+?)\]\.map/.exec(dockerfile) ?? [];
  const named = [...list.matchAll(/'([^']+)'/g)].map(([, name = '']) => name);
  t.strictSame(named.toSorted(), clients.toSorted());
  for (const name of named) {
    t.match(devDependencies[name], /^\d/, `${name} is pinned`);
    t.match(dockerfile, `devDependencies.${name} `, 'and not removed with the tools of the build');
  }
  t.end();
});

t.test('compose and the chart name the version and options that exist, and wait for the end of a node', (t) => {
  t.match(compose, `image: collab:${version}\n`);
  t.match(readSource(`${chart}/Chart.yaml`), `appVersion: ${version}\n`);
  for (const [name, text] of Object.entries({ compose, deployment, values })) {
    const named = [...text.matchAll(/\b(COLLAB_[A-Z_]+)\b/g)].map(([, variable = '']) => variable);
    t.ok(named.length > 0);
    t.strictSame(
      named.filter((variable) => !variables.has(variable)),
      [],
      name,
    );
  }
  for (const option of ['store.url', 'shared.url', 'blobs.url', 'blobs.endpoint'])
    for (const text of [compose, deployment]) t.match(text, options.get(option)?.variable ?? option);
  t.ok(Number(/stop_grace_period: (\d+)/.exec(compose)?.[1]) > endSeconds);
  const waits = Number(/command: \["sleep", "(\d+)"\]/.exec(deployment)?.[1]);
  t.ok(Number(/terminationGracePeriodSeconds: (\d+)/.exec(deployment)?.[1]) > endSeconds + waits);
  t.match(compose, /read_only: true/);
  t.match(deployment, /readOnlyRootFilesystem: true/);
  t.match(
    deployment,
    /startupProbe[^]*path: \/readyz[^]*readinessProbe[^]*path: \/readyz[^]*livenessProbe[^]*path: \/livez/,
  );
  t.end();
});

t.test('Caddy knows each node of compose, and asks it whether it is ready', (t) => {
  const nodes = [...compose.matchAll(/^ {2}(collab-\d):\n {4}<<: \*collab/gm)].map(([, name = '']) => name);
  const caddyfile = readSource(`${folder}/Caddyfile`);
  t.equal(nodes.length, 3);
  t.match(caddyfile, `reverse_proxy ${nodes.map((name) => `${name}:8787`).join(' ')} {`);
  t.match(caddyfile, 'health_uri /readyz');
  t.end();
});

t.test('compose starts nodes only once the engines can be reached from them', (t) => {
  const pgReady = /"pg_isready".*/.exec(compose)?.[0] ?? '';
  t.match(pgReady, '--host=', 'by TCP: the server of the first start, which ends again, has its socket only');
  const bucket = /^ {2}bucket:\n[^]*?\n\n/m.exec(compose)?.[0] ?? '';
  // The shell of SeaweedFS ends with 0 whatever its commands did, also before there is a filer.
  t.match(bucket, /until [^\n]*s3\.bucket\.list/);
  const endpoint = /COLLAB_BLOBS_ENDPOINT: (\S+)/.exec(compose)?.[1] ?? 'none';
  t.match(bucket, `${endpoint}/`, 'where the nodes look for it');
  t.match(compose, /bucket:\n +condition: service_completed_successfully/);
  t.end();
});

t.test('the templates of the chart use values that it declares, and templates that it has', (t) => {
  const templates = projectFiles()
    .filter((path) => path.startsWith(`${chart}/templates/`))
    .map(readSource)
    .join('\n');
  t.ok(templates.includes('PodDisruptionBudget') && templates.includes('kind: Ingress'));
  for (const [, path = ''] of templates.matchAll(/\.Values\.([A-Za-z.]+)/g)) {
    const [top = '', inner] = path.split('.');
    t.match(values, new RegExp(`^${top}:`, 'm'), path);
    if (inner !== undefined) t.match(values, new RegExp(`^${top}:[^]*?^ {2}${inner}:`, 'm'), path);
  }
  // The numbers of a values file are floats: `quote` alone writes 1e+06.
  t.match(templates, /range \$name, \$value := \.Values\.env[^]*?toJson \$value[^]*?end/);
  for (const [, name = ''] of templates.matchAll(/include "([\w.]+)"/g)) t.match(templates, `define "${name}"`);
  t.end();
});

t.test('the alerts for several nodes are the conditions that the page explains', (t) => {
  const rules = readSource(`${folder}/alerts.yml`);
  const conditions = [...rules.matchAll(/^ +expr: (.+)$/gm)].map(([, expression = '']) => expression);
  t.ok(conditions.length > 5);
  t.strictSame(
    conditions,
    [...readSource('docs/deploy/cluster.md').matchAll(/^\| `([^`]+)`(?: for [^|]+)? \|/gm)].map(
      ([, text = '']) => text,
    ),
  );
  for (const [, name = ''] of rules.matchAll(/\(collab_([a-z0-9_]+)/g)) t.ok(name in metricFamilies, name);
  t.end();
});

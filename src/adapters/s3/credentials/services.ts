import { readFile } from 'node:fs/promises';
import { messageOf } from '../../../lib/thrown.ts';
import { textOf, unescapeXml } from '../client/xml.ts';
import { isLoopback } from '../../../lib/addresses/loopback.ts';
import { parseKeys, requestText } from './fetch-keys.ts';
import { CredentialFailure, type CredentialProvider, type Credentials } from './source.ts';

/** The variables of a process. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The services of ECS and EKS. */
const LOCAL_SERVICES: ReadonlySet<string> = new Set(['169.254.170.2', '169.254.170.23', '[fd00:ec2::23]']);
const CONTAINER_SERVICE = 'http://169.254.170.2';
const INSTANCE_SERVICE = 'http://169.254.169.254';
/** The service of an instance is on the machine: where there is none, nothing answers. */
const INSTANCE_TIMEOUT_MS = 1_000;
const SESSION_MS = 3_600_000;

/** A role of a web identity, such as a Kubernetes service account. Its token is read anew each time. */
export function webIdentityProvider(env: Environment, region: string): CredentialProvider | null {
  const { AWS_WEB_IDENTITY_TOKEN_FILE: file, AWS_ROLE_ARN: role } = env;
  if (file === undefined || file === '' || role === undefined || role === '') return null;
  const name = `the web identity of AWS_WEB_IDENTITY_TOKEN_FILE`;
  return {
    name,
    async load() {
      const token = await readSecret(name, file);
      const xml = await requestText(name, {
        url: env['AWS_ENDPOINT_URL_STS'] ?? `https://sts.${region}.amazonaws.com/`,
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams({
          Action: 'AssumeRoleWithWebIdentity',
          Version: '2011-06-15',
          RoleArn: role,
          RoleSessionName: env['AWS_ROLE_SESSION_NAME'] ?? `collab-${process.pid}`,
          WebIdentityToken: token,
          DurationSeconds: String(SESSION_MS / 1_000),
        }).toString(),
      });
      const field = (tag: string): string => unescapeXml(textOf(xml, tag) ?? '');
      return parseKeys(
        name,
        JSON.stringify({
          ...(field('AccessKeyId') === '' ? {} : { AccessKeyId: field('AccessKeyId') }),
          SecretAccessKey: field('SecretAccessKey'),
          Token: field('SessionToken'),
          Expiration: field('Expiration'),
        }),
      );
    },
  };
}

/** The service for containers: of ECS, EKS and others that set its variables. */
export function containerProvider(env: Environment): CredentialProvider | null {
  const relative = env['AWS_CONTAINER_CREDENTIALS_RELATIVE_URI'] ?? '';
  const url = relative === '' ? (env['AWS_CONTAINER_CREDENTIALS_FULL_URI'] ?? '') : CONTAINER_SERVICE + relative;
  if (url === '') return null;
  const name = 'the credential service of the container';
  if (!isTrusted(url))
    throw new CredentialFailure(
      `${name}: AWS_CONTAINER_CREDENTIALS_FULL_URI must have https, or http with an address of this machine`,
      { isTransient: false },
    );
  return {
    name,
    async load() {
      const file = env['AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE'] ?? '';
      const token = file === '' ? (env['AWS_CONTAINER_AUTHORIZATION_TOKEN'] ?? '') : await readSecret(name, file);
      const headers: Record<string, string> = token === '' ? {} : { authorization: token };
      return parseKeys(name, await requestText(name, { url, headers }));
    },
  };
}

/** The role of an EC2 instance (IMDSv2). */
export function instanceProvider(env: Environment): CredentialProvider | null {
  if (env['AWS_EC2_METADATA_DISABLED']?.toLowerCase() === 'true') return null;
  const name = 'the role of an EC2 instance';
  const service = (env['AWS_EC2_METADATA_SERVICE_ENDPOINT'] ?? INSTANCE_SERVICE).replace(/\/$/, '');
  const roles = `${service}/latest/meta-data/iam/security-credentials/`;
  return {
    name,
    async load(): Promise<Credentials> {
      const token = await requestText(name, {
        url: `${service}/latest/api/token`,
        method: 'PUT',
        headers: { 'x-aws-ec2-metadata-token-ttl-seconds': '300' },
        timeoutMs: INSTANCE_TIMEOUT_MS,
      });
      const headers = { 'x-aws-ec2-metadata-token': token };
      const role = (await requestText(name, { url: roles, headers })).split('\n')[0]?.trim() ?? '';
      if (!/^[\w+=,.@-]{1,128}$/.test(role))
        throw new CredentialFailure(`${name}: it has none`, { isTransient: false });
      return parseKeys(name, await requestText(name, { url: roles + role, headers }));
    },
  };
}

/** Whether a token may be sent there: with TLS, or to addresses that lead no further than the machine. */
function isTrusted(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname } = new URL(text);
  return (
    protocol === 'https:' ||
    (protocol === 'http:' && (isLoopback(hostname.replace(/^\[|\]$/g, '')) || LOCAL_SERVICES.has(hostname)))
  );
}

async function readSecret(name: string, file: string): Promise<string> {
  try {
    return (await readFile(file, 'utf8')).trim();
  } catch (error) {
    throw new CredentialFailure(`${name}: ${messageOf(error)}`, { isTransient: false, cause: error });
  }
}

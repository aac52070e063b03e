import { messageOf } from '../../../lib/thrown.ts';
import { profileProvider } from './profile.ts';
import { containerProvider, type Environment, instanceProvider, webIdentityProvider } from './services.ts';
import { CredentialFailure, type CredentialProvider } from './source.ts';

/**
 * Where the keys come from: the first of the variables, the profile, a web identity, the service for containers, and the
 * role of an instance that there is. The order is that of the SDKs. Rejects with a `CredentialFailure` if there is none.
 *
 * @param region whose token service is asked
 */
export async function findProvider(env: Environment, region: string): Promise<CredentialProvider> {
  const provider =
    variablesProvider(env) ??
    (await profileProvider(env)) ??
    webIdentityProvider(env, region) ??
    containerProvider(env);
  return provider ?? lastResort(instanceProvider(env));
}

const NO_KEYS = 'no keys: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or give the machine a role';

/** Most machines without keys are no instances of EC2: when their service fails, the message says what to do. */
function lastResort(provider: CredentialProvider | null): CredentialProvider {
  if (provider === null) throw new CredentialFailure(NO_KEYS, { isTransient: false });
  return {
    name: provider.name,
    load: async () => {
      try {
        return await provider.load();
      } catch (error) {
        throw new CredentialFailure(`${NO_KEYS} (${messageOf(error)})`, { isTransient: false, cause: error });
      }
    },
  };
}

function variablesProvider(env: Environment): CredentialProvider | null {
  const {
    AWS_ACCESS_KEY_ID: accessKeyId = '',
    AWS_SECRET_ACCESS_KEY: secretAccessKey = '',
    AWS_SESSION_TOKEN: token = '',
  } = env;
  if (accessKeyId === '' && secretAccessKey === '') return null;
  const missing = accessKeyId === '' ? 'AWS_ACCESS_KEY_ID' : 'AWS_SECRET_ACCESS_KEY';
  if (accessKeyId === '' || secretAccessKey === '')
    throw new CredentialFailure(`${missing} is not set, but its counterpart is`, { isTransient: false });
  const keys = { accessKeyId, secretAccessKey, sessionToken: token === '' ? undefined : token };
  return { name: 'AWS_ACCESS_KEY_ID', load: () => Promise.resolve(keys) };
}

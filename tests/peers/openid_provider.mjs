// A real OpenID provider for the tests: npm's oidc-provider with its development login, and a door for the test.
// node openid_provider.mjs <folder of node_modules> <JSON: port, redirectUri, home, secret, ttl>
import { createServer } from "node:http";
import { pathToFileURL } from "node:url";
import { generateKeyPairSync } from "node:crypto";
import { join } from "node:path";

const [folder, text] = process.argv.slice(2);
const { default: Provider } = await import(pathToFileURL(join(folder, "oidc-provider", "lib", "index.js")).href);
const options = JSON.parse(text);
const issuer = `http://localhost:${options.port}`;
const key = (kid) => ({ ...generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({ format: "jwk" }), kid, use: "sig", alg: "RS256" });
const ROLES = { reader: ["maestro-read"], writer: ["maestro-write"], nobody: [] };

class Kept {
  static all = new Map();
  constructor(model) { this.model = model; }
  id(id) { return `${this.model}:${id}`; }
  async upsert(id, payload) { Kept.all.set(this.id(id), payload); }
  async find(id) { return Kept.all.get(this.id(id)); }
  async findByUid(uid) { return [...Kept.all.values()].find((one) => one.uid === uid); }
  async findByUserCode() { return undefined; }
  async consume(id) { const one = Kept.all.get(this.id(id)); if (one) one.consumed = Math.floor(Date.now() / 1000); }
  async destroy(id) { Kept.all.delete(this.id(id)); }
  async revokeByGrantId(grant) { for (const [id, one] of Kept.all) if (one.grantId === grant) Kept.all.delete(id); }
}

const keys = [key("first")];
const state = { ttl: options.ttl ?? 300, isDown: false, renewals: 0, audience: "maestro", tokenErrors: [] };
const provider = () => {
  const made = new Provider(issuer, {
    adapter: Kept,
    clients: [{
      client_id: "maestro-console", client_secret: options.secret, redirect_uris: options.redirectUris,
      post_logout_redirect_uris: options.homes, grant_types: ["authorization_code", "refresh_token"], response_types: ["code"],
    }],
    jwks: { keys },
    cookies: { keys: ["for tests only"] },
    scopes: ["openid", "offline_access"],
    claims: { openid: ["sub", "roles"] },
    conformIdTokenClaims: false,
    findAccount: async (_, id) => ({ accountId: id, claims: async () => ({ sub: id, roles: ROLES[id] ?? [] }) }),
    extraTokenClaims: async (_, token) => ({ roles: ROLES[token.accountId] ?? [] }),
    issueRefreshToken: async (_, client) => options.refreshes !== false && client.grantTypeAllowed("refresh_token"),
    rotateRefreshToken: true,
    // Without asking: consent is not what is tested.
    loadExistingGrant: async (ctx) => {
      const grant = new ctx.oidc.provider.Grant({ clientId: ctx.oidc.client.clientId, accountId: ctx.oidc.session.accountId });
      grant.addOIDCScope("openid offline_access");
      grant.addResourceScope("maestro:api", "");
      await grant.save();
      return grant;
    },
    ttl: { AccessToken: () => state.ttl, IdToken: () => state.ttl, AuthorizationCode: 60, RefreshToken: 3600, Session: 3600, Grant: 3600, Interaction: 600 },
    features: {
      devInteractions: { enabled: true },
      revocation: { enabled: true },
      rpInitiatedLogout: { enabled: true },
      resourceIndicators: {
        enabled: true, defaultResource: () => "maestro:api", useGrantedResource: () => true,
        getResourceServerInfo: () => ({ scope: "", audience: state.audience, accessTokenTTL: state.ttl, accessTokenFormat: "jwt", jwt: { sign: { alg: "RS256" } } }),
      },
    },
    pkce: { required: () => true },
  });
  made.on("grant.success", (ctx) => { if (ctx.oidc.params.grant_type === "refresh_token") state.renewals += 1; });
  made.on("grant.error", (_, error) => state.tokenErrors.push(`${error.error} ${error.error_detail ?? ""}`));
  return made.callback();
};
let serve = provider();

const door = {
  "/test/rotate": () => { keys.unshift(key("second")); serve = provider(); },
  "/test/forget-refresh": () => { for (const id of Kept.all.keys()) if (id.startsWith("RefreshToken:")) Kept.all.delete(id); },
  "/test/down": () => { state.isDown = true; },
  "/test/up": () => { state.isDown = false; },
};
createServer((request, response) => {
  const url = new URL(request.url, issuer);
  if (url.pathname.startsWith("/test/")) {
    for (const [name, value] of url.searchParams) state[name] = JSON.parse(value);
    door[url.pathname]?.();
    response.setHeader("content-type", "application/json");
    return response.end(JSON.stringify(state));
  }
  if (state.isDown) return request.socket.destroy();
  return serve(request, response);
}).listen(options.port, "localhost", () => console.log("ready"));

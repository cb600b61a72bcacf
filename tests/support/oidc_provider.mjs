// A certified OpenID Connect provider with one client and one person. Its login page accepts any password.
const { Provider } = await import(process.argv[2]);
const { ISSUER, REDIRECT_URL, LOGOUT_URL, CLIENT, SECRET } = process.env;

const provider = new Provider(ISSUER, {
  clients: [{
    client_id: CLIENT, client_secret: SECRET, redirect_uris: [REDIRECT_URL],
    grant_types: ["authorization_code", "refresh_token"],
    backchannel_logout_uri: LOGOUT_URL, backchannel_logout_session_required: true,
  }],
  features: { backchannelLogout: { enabled: true } },
  // Without its own dispatcher, the provider can send requests to this machine.
  fetch: (url, { dispatcher, ...options }) => globalThis.fetch(url, options),
  claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"], groups: ["groups"] },
  findAccount: (_context, id) => ({
    accountId: id,
    claims: () => ({ sub: id, name: "Ana Silva", email: "ana@example.com", email_verified: true, groups: ["platform"] }),
  }),
  cookies: { keys: ["test"] },
  pkce: { required: () => true },
});
provider.listen(Number(new URL(ISSUER).port), "127.0.0.1", () => console.log("ready"));

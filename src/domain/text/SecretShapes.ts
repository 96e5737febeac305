/**
 * Shapes of the keys and tokens that services issue: the prefix, the characters that follow, and their number. Taken from the
 * vendors' documentation, one row per shape; add a row for a missing vendor.
 */

/** A token that is recognized by its prefix. */
export interface TokenShape {
  /** The kind of secret; shown in place of the token. */
  readonly kind: string
  /** Possible prefixes, each of at least two characters. */
  readonly starts: ReadonlyArray<string>
  /** The characters that follow: a character class and a count. */
  readonly of: string
  readonly min: number
  readonly max: number
  /** Whether ordinary words have this form too, so that a digit is required in what follows. */
  readonly mixed?: boolean
  /** The pattern of the whole token, for tokens with several parts. Matched at the token's start. */
  readonly shape?: RegExp
}

const alnum = "[A-Za-z0-9]"
const word = "[A-Za-z0-9_-]"
const hex = "[a-f0-9]"
const upper = "[A-Z0-9]"
const dotted = "[A-Za-z0-9_.-]"
const base64 = "[A-Za-z0-9+/=_-]"

const row = (
  kind: string,
  starts: ReadonlyArray<string>,
  of: string,
  min: number,
  max = 255,
  rest: Pick<TokenShape, "mixed" | "shape"> = {}
): TokenShape => ({ kind, starts, of, min, max, ...rest })

const mixed = { mixed: true }

/** Tokens whose prefix begins no ordinary word. */
export const tokenShapes: ReadonlyArray<TokenShape> = [
  row("AWS key", ["AKIA", "ASIA", "ABIA", "ACCA", "AGPA", "AIDA", "AROA", "ANPA"], "[A-Z2-7]", 16, 16),
  row("AWS key", ["ABSK", "bedrock-api-key-"], base64, 80, 2_000),
  row("Alibaba key", ["LTAI"], alnum, 12, 24, mixed),
  row("Yandex key", ["AQVN"], word, 35, 40),
  row("DigitalOcean token", ["dop_v1_", "doo_v1_", "dor_v1_"], hex, 40, 64),
  row("Google key", ["AIza"], word, 30, 60),
  row("Google key", ["GOCSPX-"], word, 20, 64),
  row("Cloudflare key", ["v1.0-"], "[a-f0-9-]", 100, 200),
  row("Fly.io token", ["fm1r_", "fm2_", "fo1_"], base64, 40, 2_000),
  row("Heroku key", ["HRKU-"], word, 30, 80),
  row("Vercel token", ["vcp_", "vci_", "vca_", "vcr_", "vck_"], alnum, 24, 100, mixed),
  row("Netlify token", ["nfp_"], alnum, 30, 60),
  row("Render key", ["rnd_"], alnum, 24, 60, mixed),
  row("Supabase key", ["sbp_", "sb_secret_"], word, 20, 80, mixed),
  row("PlanetScale token", ["pscale_tkn_", "pscale_pw_", "pscale_oauth_"], dotted, 30, 80),
  row("Neon key", ["napi_"], alnum, 40, 80),
  row("Tailscale key", ["tskey-"], word, 20, 120, mixed),
  row("Scaleway key", ["SCW"], upper, 17, 17, mixed),

  row("GitHub token", ["ghp_", "gho_", "ghu_", "ghs_", "ghr_"], "[A-Za-z0-9_]", 36),
  row("GitHub token", ["github_pat_"], "[A-Za-z0-9_]", 22),
  row(
    "GitLab token",
    ["glpat-", "gldt-", "glrt-", "glptt-", "glft-", "glimt-", "glagent-", "gloas-", "glsoat-", "glcbt-", "glffct-"],
    dotted,
    18,
    300
  ),
  row("GitLab token", ["GR1348941"], word, 20, 40),
  row("Atlassian token", ["ATATT3", "ATCTT3", "ATBB", "ATOA", "ATSTT3"], base64, 24, 300, mixed),
  row("npm token", ["npm_"], alnum, 36, 64),
  row("PyPI token", ["pypi-"], word, 30, 500, mixed),
  row("RubyGems key", ["rubygems_"], hex, 40, 64),
  row("NuGet key", ["oy2"], "[a-z0-9]", 43, 43, mixed),
  row("Clojars token", ["CLOJARS_"], "[a-z0-9]", 40, 64),
  row("crates.io token", ["cio"], alnum, 32, 32, mixed),
  row("Docker token", ["dckr_pat_", "dckr_oat_"], word, 20, 80),
  row("Artifactory key", ["AKCp"], alnum, 60, 80),
  row("Artifactory key", ["cmVmd"], alnum, 55, 64, mixed),
  row("CircleCI token", ["CCIPAT_", "CCIPRJ_"], word, 30, 120),
  row("Buildkite token", ["bkua_", "bkaat_", "bkat_"], alnum, 30, 80, mixed),
  row("Pulumi token", ["pul-"], hex, 40, 40),
  row("Octopus key", ["API-"], upper, 25, 40, mixed),
  row("Sourcegraph token", ["sgp_"], "[a-zA-Z0-9_]", 40, 80),
  row("Sentry token", ["sntrys_", "sntryu_"], base64, 40, 500),
  row("Grafana token", ["glc_", "glsa_"], base64, 30, 400, mixed),
  row("New Relic key", ["NRAK-", "NRII-", "NRJS-", "NRIQ-", "NRRA-"], word, 19, 64),
  row("Postman key", ["PMAK-"], word, 40, 80),
  row("1Password key", ["ops_eyJ"], base64, 100, 4_000),
  row("1Password key", ["A3-"], "[A-Z0-9-]", 30, 40, mixed),
  row("age key", ["AGE-SECRET-KEY-1", "age-plugin-yubikey-1"], "[A-Z0-9]", 40, 80),

  // CSS classes and branches are also named `sk-…`, without digits.
  row("model key", ["sk-"], word, 20, 300, mixed),
  row("Hugging Face token", ["hf_", "api_org_"], alnum, 30, 60),
  row("Groq key", ["gsk_"], alnum, 40, 80),
  row("xAI key", ["xai-"], alnum, 60, 120),
  row("Perplexity key", ["pplx-"], alnum, 40, 80),
  row("Replicate token", ["r8_"], alnum, 35, 50),
  row("LangSmith key", ["lsv2_pt_", "lsv2_sk_"], "[a-f0-9_]", 36, 60),
  row("Tavily key", ["tvly-"], word, 24, 60, mixed),
  row("Pinecone key", ["pcsk_"], "[A-Za-z0-9_]", 40, 100),
  row("Together key", ["tgp_v1_"], word, 30, 80),
  row("Fireworks key", ["fw_"], alnum, 22, 40, mixed),
  row("ElevenLabs key", ["sk_"], hex, 40, 64),
  row("Voyage key", ["pa-"], word, 40, 50, mixed),

  row("Stripe key", ["sk_live_", "sk_test_", "sk_prod_", "rk_live_", "rk_test_", "rk_prod_"], "[A-Za-z0-9_]", 10),
  row("webhook secret", ["whsec_"], base64, 20, 80, mixed),
  row("Square token", ["sq0atp-", "sq0csp-", "sq0idp-"], word, 20, 60),
  row("Square token", ["EAAA"], word, 50, 100, mixed),
  row("Facebook token", ["EAAC", "EAAG", "EAAB", "EAAJ", "EAAM", "EAAP"], alnum, 60, 400, mixed),
  row("Plaid token", ["access-sandbox-", "access-development-", "access-production-"], "[a-f0-9-]", 30, 40),
  row("Razorpay key", ["rzp_live_", "rzp_test_"], alnum, 14, 30, mixed),
  row("Flutterwave key", ["FLWSECK_TEST-", "FLWSECK-"], word, 12, 60),
  row("Shopify token", ["shpat_", "shpca_", "shppa_", "shpss_", "shpua_"], hex, 32, 32),
  row("EasyPost key", ["EZAK", "EZTK"], alnum, 50, 60),
  row("Shippo token", ["shippo_live_", "shippo_test_"], hex, 40, 40),
  row("Duffel token", ["duffel_test_", "duffel_live_"], word, 40, 50),

  row(
    "Slack token",
    ["xoxa-", "xoxb-", "xoxc-", "xoxe-", "xoxe.xox", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xoxd-", "xapp-"],
    "[A-Za-z0-9%.-]",
    10,
    400
  ),
  row("Twilio key", ["SK"], hex, 32, 32, mixed),
  row("Mailgun key", ["key-"], hex, 32, 32, mixed),
  row("Brevo key", ["xkeysib-", "xsmtpsib-"], word, 60, 100),
  row("Resend key", ["re_"], "[A-Za-z0-9_]", 24, 50, mixed),
  row("Linear key", ["lin_api_", "lin_oauth_", "lin_wh_"], alnum, 24, 80),
  row("Notion token", ["ntn_"], alnum, 40, 60),
  row("Notion token", ["secret_"], alnum, 40, 50, mixed),
  row("Airtable token", ["pat"], dotted, 70, 90, { shape: /pat[A-Za-z0-9]{14}\.[a-f0-9]{64}/y }),
  row("Figma token", ["figd_", "figo_", "figor_"], word, 30, 80, mixed),
  row("Databricks token", ["dapi", "dkea", "dose"], "[a-f0-9-]", 32, 36, mixed),
  row("HubSpot token", ["pat-na1-", "pat-na2-", "pat-eu1-", "pat-ap1-"], "[a-f0-9-]", 30, 40),
  row("Typeform token", ["tfp_"], dotted, 40, 80),
  row("Prefect key", ["pnu_", "pnb_"], alnum, 32, 50),
  row("ReadMe key", ["rdme_"], alnum, 60, 80),
  row("PostHog key", ["phx_"], alnum, 30, 60),
  row("Adafruit key", ["aio_"], alnum, 28, 28, mixed),
  row("Contentful token", ["CFPAT-"], word, 40, 50),
  row("Adobe secret", ["p8e-"], alnum, 30, 40, mixed),
  row("SettleMint token", ["sm_pat_", "sm_aat_", "sm_sat_"], alnum, 16, 32, mixed),
  row("Infracost key", ["ico-"], alnum, 32, 32, mixed),
  row("Zuplo key", ["zpka_"], "[A-Za-z0-9_]", 30, 80),

  // `-----BEGIN … PRIVATE KEY`, and the first words of a PuTTY key.
  row("private key", ["LS0tLS1CRUdJTi", "UHVUVFktVXNlci1LZXktRmlsZS"], base64, 40, 65_536, {
    shape:
      /(?:LS0tLS1CRUdJTi(?:BQUklWQVRF|BSU0EgUFJJVkFUR|BFQyBQUklWQVRF|BEU0EgUFJJVkFUR|BPUEVOU1NIIFBSSVZBVE|BFTkNSWVBURUQgUFJJVkFUR|BQR1AgUFJJVkFUR)|UHVUVFktVXNlci1LZXktRmlsZS)[A-Za-z0-9+/]{0,65536}={0,2}(?:(?:\s|\\{1,7}[nrt]){1,8}[A-Za-z0-9+/]{16,128}={0,2}){0,1024}/y
  }),
  // The same without its lines: RSA, elliptic curves and Ed25519, whose first bytes say that a private key follows.
  row("private key", ["MII", "MIG", "MIH", "MH", "MC4"], base64, 40, 65_536, {
    shape:
      /(?:MII[A-Za-z0-9+/]{3}IBA(?:AK[BC]|DANBgkqhkiG9w0BAQEFAASC)|MH[cQ]CAQEEI|MI[GH][A-Za-z0-9+/]AgEAMB[AM]GByqGSM49|MIGkAgEBBD|MIHcAgEBBEI|MC4CAQAwBQYDK2V[uw]BCIEI)[A-Za-z0-9+/]{24,65536}={0,2}/y
  }),
  row("JWT", ["eyJ"], word, 8, 8_192, {
    shape: /eyJ[A-Za-z0-9_-]{8,8192}\.[A-Za-z0-9_-]{8,65536}(?:\.[A-Za-z0-9_-]{0,65536}){0,3}/y
  })
]

/** A token that follows a dot, a colon, a slash or a tilde, with the text required before it. */
export interface JoinedShape {
  readonly kind: string
  /** The last character before the token. */
  readonly joint: string
  /** The pattern that the text before the token ends with. */
  readonly after: RegExp
  /** The pattern of the token, matched at its start. */
  readonly shape: RegExp
}

const joined = (kind: string, after: RegExp, shape: RegExp, joint = "."): JoinedShape => ({ kind, joint, after, shape })

/** Number of characters before a token that `after` inspects. */
export const joinedReach = 96

/** Tokens that are recognized by the text before them. */
export const joinedShapes: ReadonlyArray<JoinedShape> = [
  joined("Vault token", /(?:^|[^A-Za-z0-9])hv[sbr]\.$/, /[A-Za-z0-9_-]{20,300}/y),
  joined(
    "Doppler token",
    /(?:^|[^A-Za-z0-9])dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?$/,
    /[A-Za-z0-9]{40,44}/y
  ),
  joined("Dynatrace token", /(?:^|[^A-Za-z0-9])dt0[a-z]\d{2}\.$/, /[A-Z0-9]{24}\.[A-Z0-9]{64}/y),
  joined("Harness token", /(?:^|[^A-Za-z0-9])[ps]at\.$/, /[A-Za-z0-9_-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}/y),
  joined("Terraform token", /[A-Za-z0-9]{14}\.atlasv1\.$/, /[A-Za-z0-9_=-]{40,120}/y),
  joined("Dropbox token", /(?:^|[^A-Za-z0-9])sl\.(?:u\.)?$/, /[A-Za-z0-9_-]{100,2000}/y),
  joined("SendGrid key", /(?:^|[^A-Za-z0-9])SG\.$/, /[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}/y),
  joined("Snyk token", /(?:^|[^A-Za-z0-9])snyk_[us]at\.[a-f0-9]{8}\.$/, /[A-Za-z0-9_.-]{20,200}/y),
  joined("Google key", /(?:^|[^A-Za-z0-9])ya29\.(?:[a-z]\.)?$/, /[A-Za-z0-9_.-]{20,2048}/y),
  joined("Google key", /(?:^|[^A-Za-z0-9/])1\/\/$/, /0[A-Za-z0-9_-]{35,200}/y, "/"),
  joined("Yandex token", /(?:^|[^A-Za-z0-9])t1\.$/, /[A-Z0-9a-z_-]{20,}[=]{0,2}\.[A-Z0-9a-z_-]{86}={0,2}/y),
  joined("Azure secret", /[A-Za-z0-9_~.]{3}\dQ~$/, /[A-Za-z0-9_~.-]{31,34}/y, "~"),
  joined("OpenShift token", /(?:^|[^A-Za-z0-9])sha256~$/, /[A-Za-z0-9_-]{40,60}/y, "~"),
  joined("Telegram token", /\d{8,10}:$/, /AA[A-Za-z0-9_-]{32,35}(?![A-Za-z0-9_-])/y, ":"),
  joined(
    "Slack token",
    /hooks\.slack\.com\/[a-z]{4,12}\/[A-Z0-9]{6,16}\/[A-Z0-9]{6,16}\/$/,
    /[A-Za-z0-9]{16,64}/y,
    "/"
  ),
  joined("Discord webhook", /\/api\/(?:v\d{1,2}\/)?webhooks\/\d{15,22}\/$/, /[A-Za-z0-9_-]{40,100}/y, "/"),
  joined(
    "Teams webhook",
    /\.webhook\.office\.com\/.{36,90}\/IncomingWebhook\/$/,
    /[A-Za-z0-9]{32}(?:\/[a-z0-9-]{36})?/y,
    "/"
  )
]

/** A Discord bot token: id, time and signature, each base64 without padding. */
export const discordShape = /[MNO][A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,45}(?![A-Za-z0-9_-])/y

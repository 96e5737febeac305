import { seededRandom } from "../../src/domain/evaluation/SeededRandom.ts"

/**
 * Generates secrets of thirty kinds from a seed, with the right alphabet and length, and valid nowhere. They are assembled here
 * so that no scanner finds one in these files.
 */
export interface Planted {
  readonly kind: string
  /** The secret itself. */
  readonly value: string
  /** A text that contains it, as it occurs in practice. */
  readonly text: string
}

const small = "abcdefghijklmnopqrstuvwxyz"
const large = small.toUpperCase()
const digits = "0123456789"
const alnum = small + large + digits
const hex = `${digits}abcdef`

type Of = (alphabet: string, length: number) => string

const jwt = (of: Of) => `${"eyJ"}hbGciOiJIUzI1NiJ9.${"eyJ"}${of(alnum, 40)}.${of(`${alnum}-_`, 43)}`

/** Each kind: its form, and the ways in which it is written down, with `§` for the value. */
const kinds: ReadonlyArray<readonly [kind: string, make: (of: Of) => string, ways: ReadonlyArray<string>]> = [
  [
    "AWS access key",
    (of) => `${"AK"}IA${of(`${large}234567`, 16)}`,
    [`aws_access_key_id = §`, `{"AccessKeyId": "§"}`, `key § was used`, `export A=§;`]
  ],
  [
    "AWS secret key",
    (of) => of(`${alnum}+/`, 40),
    [
      `AWS_SECRET_ACCESS_KEY=§`,
      `aws_secret_access_key = §`,
      `"SecretAccessKey": "§",`,
      `secretAccessKey: '§'`,
      `  - name: AWS_SECRET_ACCESS_KEY\n    value: §`
    ]
  ],
  [
    "GitHub token",
    (of) => `${"gh"}p_${of(alnum, 36)}`,
    [`https://§@github.com/a/b.git`, `GH_TOKEN=§ gh pr list`, `remote: §`, `token §.`]
  ],
  [
    "GitHub fine-grained",
    (of) => `${"github"}_pat_${of(alnum, 22)}_${of(alnum, 59)}`,
    [`git clone https://oauth2:§@github.com/x`, `"token": "§"`, "§"]
  ],
  [
    "GitLab token",
    (of) => `${"gl"}pat-${of(`${alnum}_-`, 19)}7`,
    [`PRIVATE-TOKEN: §`, `curl --header "PRIVATE-TOKEN: §" https://gitlab.example.com`, `//gitlab/:_authToken=§`]
  ],
  [
    "npm token",
    (of) => `${"np"}m_${of(alnum, 36)}`,
    [`//registry.npmjs.org/:_authToken=§`, `NPM_TOKEN=§`, `npm config set token §`]
  ],
  [
    "npm _auth",
    (of) => `${of(alnum, 27)}=`,
    [`_auth=§`, `//npm.example.com/:_auth = "§"`, `registry=https://x\n_auth=§\nemail=a@b.c`]
  ],
  [
    "PyPI token",
    (of) => `${"py"}pi-AgEIcHlwaS5vcmc${of(`${alnum}_-`, 80)}`,
    [`password = §`, `twine upload -u __token__ -p §`, `TWINE_PASSWORD: "§"`]
  ],
  [
    "Slack token",
    (of) => `${"xo"}xb-${of(digits, 12)}-${of(digits, 12)}-${of(alnum, 24)}`,
    [`{"token":"§"}`, `SLACK_BOT_TOKEN=§`, `-d token=§ https://slack.com/api`]
  ],
  [
    "Slack webhook",
    (of) => of(alnum, 24),
    [
      `https://hooks.slack.com/services/T0ABCDEF1/B0ABCDEF1/§`,
      `"url": "https:\\/\\/hooks.slack.com/services/T0ABCDEF1/B0ABCDEF1/§"`
    ]
  ],
  [
    "Discord token",
    (of) => `M${of(alnum, 23)}.${of(alnum, 6)}.${of(`${alnum}_-`, 38)}`,
    [`client.login("§")`, `DISCORD_TOKEN=§`, `Authorization: Bot §`]
  ],
  [
    "Stripe key",
    (of) => `${"sk"}_live_${of(alnum, 24)}`,
    [`stripe.api_key = "§"`, `curl https://api.stripe.com/v1/charges -u §:`, `STRIPE_KEY: §`]
  ],
  [
    "Twilio auth token",
    (of) => of(hex, 32),
    [`TWILIO_AUTH_TOKEN=§`, `authToken: '§'`, `twilio login --auth-token=§`, `["--auth-token", "§"]`]
  ],
  [
    "SendGrid key",
    (of) => `${"S"}G.${of(`${alnum}_-`, 22)}.${of(`${alnum}_-`, 43)}`,
    [`SENDGRID_API_KEY='§'`, `Authorization: Bearer §`, `key=§`]
  ],
  [
    "OpenAI key",
    (of) => `${"sk"}-proj-${of(`${alnum}_-`, 63)}4`,
    [`OPENAI_API_KEY=§`, `new OpenAI({ apiKey: "§" })`, `-H "Authorization: Bearer §"`]
  ],
  [
    "Anthropic key",
    (of) => `${"sk"}-ant-api03-${of(`${alnum}_-`, 93)}AA`,
    [`x-api-key: §`, `ANTHROPIC_API_KEY="§"`, `{\\"apiKey\\":\\"§\\"}`]
  ],
  [
    "Google key",
    (of) => `${"AI"}za${of(`${alnum}_-`, 35)}`,
    [
      `https://maps.googleapis.com/maps/api/js?key=§&callback=init`,
      `<meta-data android:value="§"/>`,
      `GOOGLE_API_KEY: §`
    ]
  ],
  [
    "Azure account key",
    (of) => `${of(`${alnum}+/`, 86)}==`,
    [
      `DefaultEndpointsProtocol=https;AccountName=x;AccountKey=§;EndpointSuffix=core.windows.net`,
      `az storage blob list --account-key §`,
      `"azureStorageAccountKey": "§"`
    ]
  ],
  [
    "Azure SAS",
    (of) => `${of(alnum, 41)}%2B%3D`,
    [`https://x.blob.core.windows.net/c/f?sv=2022-11-02&sr=b&sig=§&se=2027-01-01`, `?se=1&sp=r&sig=§`]
  ],
  [
    "AWS signature",
    (of) => of(hex, 64),
    [
      `https://b.s3.amazonaws.com/k?X-Amz-Expires=900&X-Amz-SignedHeaders=host&X-Amz-Signature=§`,
      `GET /k?X-Amz-Date=20260101T000000Z&X-Amz-Signature=§ HTTP/1.1`
    ]
  ],
  [
    "DigitalOcean token",
    (of) => `${"do"}p_v1_${of(hex, 64)}`,
    [`doctl auth init -t §`, `do_token = "§"`, `DIGITALOCEAN_ACCESS_TOKEN=§`]
  ],
  [
    "Hugging Face token",
    (of) => `${"h"}f_${of(small + large, 34)}`,
    [`huggingface-cli login --token §`, `HF_TOKEN=§`, `login("§")`]
  ],
  [
    "Vault token",
    (of) => `${"hv"}s.${of(`${alnum}_-`, 90)}`,
    [`export VAULT_TOKEN="§"`, `X-Vault-Token: §`, `token                §`]
  ],
  [
    "JWT",
    jwt,
    [`Authorization: Bearer §`, `Cookie: session=§; theme=dark`, `    token: §`, `localStorage.setItem("jwt", "§")`]
  ],
  [
    "private key",
    (of) => `MIIE${of(`${alnum}+/`, 60)}`,
    [
      `-----BEGIN ${"RSA PRIVATE"} KEY-----\n§\n§\n-----END ${"RSA PRIVATE"} KEY-----`,
      `{"private_key": "-----BEGIN ${"PRIVATE"} KEY-----\\n§\\n-----END ${"PRIVATE"} KEY-----\\n"}`,
      `key: |\n  -----BEGIN ${"OPENSSH PRIVATE"} KEY-----\n  §\n  §`
    ]
  ],
  [
    "database password",
    (of) => `${of(alnum, 13)}9${of("!*^", 1)}`,
    [
      `postgres://app:§@db.internal:5432/shop`,
      `Server=db;Database=x;User Id=sa;Password=§;Encrypt=true`,
      `db.internal:5432:shop:app:§`,
      `mysql -u root -p§ shop`,
      `PGPASSWORD=§ psql -h db`,
      `spring.datasource.password=§`
    ]
  ],
  [
    "login password",
    (of) => `${of(small, 7)}${of(digits, 3)}${of(large, 2)}`,
    [
      `password: §`,
      `{"username":"ann","password":"§"}`,
      `machine api.example.com login ann password §`,
      `curl -u ann:§ https://example.com`,
      `["curl","-u","ann:§","https://example.com"]`,
      `docker login --password §`,
      `<password>§</password>`,
      `the password is §.`,
      `sshpass -p '§' ssh ann@host`,
      `<add key="DbPassword" value="§"/>`
    ]
  ],
  [
    "hex secret",
    (of) => of(hex, 64),
    [
      `SECRET_KEY_BASE=§`,
      `encryption_key = "§"`,
      `private key: §`,
      `PRIVATE_KEY=0x§`,
      `"hmacSecret": "§"`,
      `signing-key: §`
    ]
  ],
  [
    "docker auth",
    (of) => `${of(alnum, 34)}==`,
    [`{"auths":{"registry.example.com":{"auth":"§"}}}`, `Authorization: Basic §`, `{\\"auth\\": \\"§\\"}`]
  ],
  [
    "service token",
    (of) => of(alnum, 40),
    [
      `X-Auth-Token: §`,
      `--token=§`,
      `["deploy","--api-token","§"]`,
      `client-secret: "§"`,
      `my_api_key = "§"`,
      `SERVICE_TOKEN%3D§%26x`,
      `define('AUTH_KEY', '§');`,
      `accessToken=§&x=1`,
      `os.environ["API_SECRET"] = "§"`,
      `$env:API_TOKEN = "§"`
    ]
  ]
]

/** This many secrets of each of the thirty kinds, rotating through the ways to write them. */
export const plantedSecrets = (each = 10, seed = 15): ReadonlyArray<Planted> => {
  const next = seededRandom(seed)
  const of: Of = (alphabet, length) =>
    Array.from({ length }, () => alphabet.charAt(Math.floor(next() * alphabet.length))).join("")
  return kinds.flatMap(([kind, make, ways]) =>
    Array.from({ length: each }, (_, index) => {
      const value = make(of)
      return { kind, value, text: ways[index % ways.length]?.replaceAll("§", () => value) ?? value }
    })
  )
}

const pieceLength = 12

/** The part of a secret that is unique: all JWTs and all PyPI tokens begin alike. */
const ownOf = ({ kind, value }: Planted): string => (kind === "JWT" || kind === "PyPI token" ? value.slice(24) : value)

/** Whether a text shows a value: twelve consecutive characters of it, or all of a shorter one. */
export const revealing = (text: string): ((value: string) => boolean) => {
  const pieces = new Set<string>()
  for (let at = 0; at + pieceLength <= text.length; at += 1) pieces.add(text.slice(at, at + pieceLength))
  return (value) => {
    if (value.length < pieceLength) return text.includes(value)
    for (let at = 0; at + pieceLength <= value.length; at += 1) {
      if (pieces.has(value.slice(at, at + pieceLength))) return true
    }
    return false
  }
}

/** The secrets that a text reveals. */
export const givenAway = (text: string, secrets: ReadonlyArray<Planted>): ReadonlyArray<Planted> => {
  const isShown = revealing(text)
  return secrets.filter((secret) => isShown(ownOf(secret)))
}

/** How to point programs at a gateway, as their own documentation describes it. */

/** The programs with known settings. */
export const clients = [
  "claude",
  "codex",
  "gemini",
  "pi",
  "anthropic-sdk",
  "openai-sdk",
  "google-sdk",
  "effect"
] as const
export type Client = (typeof clients)[number]

/** Returns the settings or the command that points a program at the gateway at this address. */
export const clientSetup = (client: Client, url: string): string => {
  switch (client) {
    case "claude":
      return `export ANTHROPIC_BASE_URL=${url}\nclaude`
    case "codex":
      return `# ~/.codex/config.toml
model_provider = "palimpsest"

[model_providers.palimpsest]
name = "OpenAI through palimpsest"
base_url = "${url}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"`
    case "gemini":
      return `export GOOGLE_GEMINI_BASE_URL=${url}\ngemini`
    case "pi":
      return `# ~/.pi/agent/models.json
{
  "providers": {
    "anthropic": { "baseUrl": "${url}" },
    "openai": { "baseUrl": "${url}/v1" },
    "google": { "baseUrl": "${url}/v1beta" }
  }
}`
    case "anthropic-sdk":
      return `new Anthropic({ baseURL: "${url}" })`
    case "openai-sdk":
      return `new OpenAI({ baseURL: "${url}/v1" })`
    case "google-sdk":
      return `new GoogleGenAI({ apiKey, httpOptions: { baseUrl: "${url}" } })`
    case "effect":
      return `AnthropicClient.layer({ apiKey, apiUrl: "${url}" })
OpenAiClient.layer({ apiKey, apiUrl: "${url}/v1" })`
  }
}

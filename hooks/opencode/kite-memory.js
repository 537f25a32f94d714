// Passes what a person asks to Kite Memory, and the notes that it finds to the model. Silent where no daemon runs.
import { spawn } from "node:child_process"

const COMMAND = "PATH=\"$PATH:$HOME/.local/bin\" kmem-hook --agent opencode"
const LIMIT_MS = 5000
const NOTE = "kite-memory"

const noteFor = (session_id, prompt_id, cwd, prompt) =>
  new Promise((resolve) => {
    const child = spawn(COMMAND, { shell: true, timeout: LIMIT_MS, stdio: ["pipe", "pipe", "ignore"] })
    let printed = ""
    child.stdout.setEncoding("utf8").on("data", (piece) => (printed += piece))
    child.stdin.on("error", () => {})
    child.on("error", () => resolve(""))
    child.on("close", () => {
      try {
        resolve(JSON.parse(printed).hookSpecificOutput.additionalContext)
      } catch {
        resolve("")
      }
    })
    child.stdin.end(JSON.stringify({ hook_event_name: "UserPromptSubmit", session_id, prompt_id, cwd, prompt }))
  })

// OpenCode 1: a part of the message that the person did not write.
const server = async ({ directory }) => ({
  "chat.message": async ({ sessionID }, { message, parts }) => {
    const asked = parts.filter((part) => part.type === "text" && !part.synthetic)
    if (asked.length === 0) return
    const text = await noteFor(sessionID, message.id, directory, asked.map((part) => part.text).join("\n"))
    if (!text) return
    const id = `${parts.at(-1).id}z` // parts are read in the order of their ids
    parts.push({ id, sessionID, messageID: message.id, type: "text", text, synthetic: true })
  },
})

const folderOf = async (ctx, sessionID) => {
  const session = await ctx.session.get({ sessionID }).catch(() => undefined)
  return session?.location?.directory ?? ctx.location?.directory ?? ""
}

// OpenCode 2: kept in the message's metadata, so that every later request has the same note at the same place.
const setup = async (ctx) => {
  await ctx.session.hook("prompt", async (event) => {
    if (!event.prompt?.text?.trim()) return
    const cwd = await folderOf(ctx, event.sessionID)
    const text = await noteFor(event.sessionID, event.messageID, cwd, event.prompt.text)
    if (text) event.metadata = { ...event.metadata, [NOTE]: text }
  })
  await ctx.session.hook("context", (event) => {
    event.messages = event.messages.map((message) => {
      const text = message.role === "user" && Array.isArray(message.content) && message.metadata?.[NOTE]
      if (typeof text !== "string") return message
      return { ...message, content: [...message.content, { type: "text", text: `\n\n${text}` }] }
    })
  })
}

export default { id: NOTE, server, setup }

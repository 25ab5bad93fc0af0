# A GPT: one table both reads bytes and scores them, and sizes are those of the command that compiles it.
include "block.mt"
param context = 64
param width   = 64
param heads   = 4
param layers  = 3
param rate    = 0.05 in 0..0.9
param lr      = 3e-3 in 0..1

data {
  examples = text("text.txt", level = "byte")
  split    = 90 / 10
  window   : class[256][context + 1]
}

model {
  token = slice(window, 0, 0, context)
  next  = slice(window, 0, 1, context + 1)
  wte   = weight([256, width], normal(0, 0.1))
  wpe   = weight([context, width])
  h     = dropout(gather(wte, token) + wpe, rate)
  repeat i in 0..layers {
    h = block(h, heads, rate, name = "h.{i}")
  }
  scores = unembed(layer_norm(h), wte)
}

train {
  loss      = cross_entropy(scores, next)
  metric    = accuracy(scores, next)
  optimizer = adamw(cosine_lr(lr, warmup = 50), weight_decay = 0.1)
  no_decay  = ["*.bias", "wpe"]
  clip_norm = 1
  batch     = 8
  epochs    = 6
}

# GPT-2: 124 million parameters with these sizes. A published model.safetensors loads as it is.
include "gpt.mt"
param layers   = 12
param heads    = 12
param width    = 768
param context  = 1024          # tokens that it sees
param vocab    = 50257         # of the byte-pair encoding
param examples = 32            # of a batch
param lr       = 6e-4 in 0..1  # highest learning rate

# Files of 16-bit tokens. A window is a piece of them: what is read, and one token more.
data {
  train  = tokens("gpt2/train.bin")
  test   = tokens("gpt2/val.bin")
  window : class[vocab][context + 1]
}

# One table both for the tokens that are read and for the scores of those that may come next.
model {
  token = slice(window, 0, 0, context)
  next  = slice(window, 0, 1, context + 1)
  wte   = weight([vocab, width], normal(0, deviation), name = "wte.weight")
  wpe   = weight([context, width], normal(0, deviation), name = "wpe.weight")
  h     = gather(wte, token) + wpe
  repeat i in 0..layers {
    h = block(h, heads, layers, name = "h.{i}")
  }
  ln_f   = layer_norm(h)
  logits = unembed(ln_f, wte)
}

train {
  loss      = cross_entropy(logits, next)
  optimizer = adamw(cosine_lr(lr, final = 0.1 * lr, warmup = 0.02 * total_steps), beta2 = 0.95, weight_decay = 0.1)
  no_decay  = ["*.bias", "*ln_*"]
  clip_norm = 1
  precision = bf16
  batch     = examples
  epochs    = 1
}

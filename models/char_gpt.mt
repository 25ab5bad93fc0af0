# A small GPT that writes like Shakespeare, one character after the other.
include "gpt.mt"
param layers     = 2
param heads      = 4
param width      = 64
param context    = 128           # characters that it sees
param examples   = 64            # of a batch
param vocabulary = 65            # distinct characters of the text, or more
param lr         = 3e-3 in 0..1  # highest learning rate

# The characters of the text, sorted, are the classes. A window is a piece of it: what is read, and one character more. Windows
# overlap a little, so that eight epochs are a thousand steps.
data {
  examples = text("tinyshakespeare/input.txt", level = "char", stride = context - 2)
  split    = 90 / 10
  window   : class[vocabulary][context + 1]
}

# At each position, a score for each character that may come next.
model {
  token = slice(window, 0, 0, context)
  next  = slice(window, 0, 1, context + 1)
  wte   = weight([vocabulary, width], normal(0, deviation), name = "wte.weight")
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
  metric    = accuracy(logits, next)
  optimizer = adamw(cosine_lr(lr, warmup = 100), beta2 = 0.99, weight_decay = 0.1)
  no_decay  = ["*.bias", "*ln_*"]
  clip_norm = 1
  batch     = examples
  epochs    = 8
}

# A small vision transformer: an image as a sequence of 64 patches, each of which looks at all others.
param layers    = 6
param heads     = 3
param width     = 192
param patch     = 4             # pixels on a side
param examples  = 256           # of a batch
param lr        = 1e-3 in 0..1  # highest learning rate
param smoothing = 0.1 in 0..1   # of the labels

data {
  train = cifar10("cifar10/cifar-10-batches-bin", "train")
  test  = cifar10("cifar10/cifar-10-batches-bin", "test")
  image : u8[3, 32, 32]
  label : class[10]
}

fn self_attention(x[t, width], heads) {
  qkv  = linear(x, 3 * width)
  q    = slice(qkv, 1, 0, width)
  k    = slice(qkv, 1, width, 2 * width)
  v    = slice(qkv, 1, 2 * width, 3 * width)
  proj = linear(attention(q, k, v, heads), width)
  return proj
}

fn feed_forward(x[t, width]) {
  fc1 = gelu(linear(x, 4 * width))
  fc2 = linear(fc1, width)
  return fc2
}

fn block(x, heads) {
  norm1 = layer_norm(x)
  attn  = self_attention(norm1, heads)
  h     = x + attn
  norm2 = layer_norm(h)
  mlp   = feed_forward(norm2)
  return h + mlp
}

model {
  count       = (32 / patch)^2
  x           = (random_flip(random_crop(image, padding = 4)) / 255 - 0.473) / 0.251
  patch_embed = conv2d(x, width, patch, stride = patch)  # [width, rows, columns]
  patches     = transpose(reshape(patch_embed, [width, count]))
  pos_embed   = weight([count, width], normal(0, 0.02))
  h           = patches + pos_embed
  repeat i in 0..layers {
    h = block(h, heads, name = "blocks.{i}")
  }
  norm = layer_norm(h)
  head = linear(mean(norm, axis = 0), 10)
}

train {
  loss      = cross_entropy(head, label, label_smoothing = smoothing)
  metric    = accuracy(head, label)
  optimizer = adamw(one_cycle_lr(lr), weight_decay = 0.05)
  no_decay  = ["*.bias", "*norm*.weight", "pos_embed"]
  clip_norm = 1
  precision = bf16
  batch     = examples
  epochs    = 60
}

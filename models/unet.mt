# U-Net: what each pixel of an image shows. tools/make_shapes.py draws discs, squares and triangles.
param width = 8             # channels at full size
param lr    = 4e-3 in 0..1  # highest learning rate

data {
  examples = npz("shapes.npz")
  split    = 90 / 10
  image    : u8[1, 32, 32]
  mask     : class[4][32, 32]
}

fn twice(x, out) {
  a = relu(batch_norm(conv2d(x, out, 3, padding = 1, bias = false)))
  b = relu(batch_norm(conv2d(a, out, 3, padding = 1, bias = false)))
  return b
}

# From half the size, beside what was there at this size on the way down.
fn up(x, skip, out) {
  grown = conv_transpose2d(x, out, 2, stride = 2)
  both  = twice(concat([skip, grown], axis = 0), out)
  return both
}

model {
  x     = image / 255
  down1 = twice(x, width)
  down2 = twice(max_pool(down1, 2), 2 * width)
  down3 = twice(max_pool(down2, 2), 4 * width)
  up2   = up(down3, down2, 2 * width)
  up1   = up(up2, down1, width)
  head  = permute(conv2d(up1, 4, 1), [1, 2, 0])  # a score for each class, last
}

train {
  loss      = cross_entropy(head, mask)
  metric    = accuracy(head, mask)
  optimizer = adam(cosine_lr(lr))
  batch     = 32
  epochs    = 8
}

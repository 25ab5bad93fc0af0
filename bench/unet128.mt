# A U-Net for images of 128 x 128, as bench/vision measures it: each size has two products of nine taps down and two up, which
# see what was there on the way down, and the image itself is what it learns to draw.
param examples = 32  # of a batch

data {
  train = images("imagenet/train", resize = true)
  image : u8[3, 128, 128]
  label : class[10]
}

fn twice(x, out) {
  first  = relu(batch_norm(conv2d(x, out, 3, padding = 1, bias = false)))
  second = relu(batch_norm(conv2d(first, out, 3, padding = 1, bias = false)))
  return second
}

fn up(x, skip, out) {
  both = twice(concat([upsample(x, 2), skip], axis = 0), out)
  return both
}

model {
  x     = image / 255 - 0.5
  down1 = twice(x, 32)
  down2 = twice(max_pool(down1, 2), 64)
  down3 = twice(max_pool(down2, 2), 128)
  down4 = twice(max_pool(down3, 2), 256)
  up3   = up(down4, down3, 128)
  up2   = up(up3, down2, 64)
  up1   = up(up2, down1, 32)
  drawn = conv2d(up1, 3, 1)
}

train {
  loss      = mse(drawn, x)
  optimizer = sgd(0.1, momentum = 0.9, weight_decay = 1e-4)
  precision = bf16
  batch     = examples
}
